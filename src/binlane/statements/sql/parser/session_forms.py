"""The grammar of statements of sessions and administrators: all that change no row and no object.

The signs of the grammar are those of `notation`; the nodes are those of `tree.statements`. SET and
the statements of programs are read elsewhere.

Source: MySQL 9.7, sql/sql_yacc.yy; MariaDB 11.8, sql/sql_yacc.yy; measured on MariaDB 10.11.19,
11.8.6 and MySQL 9.7.4 (`tests/vectors/accepted.tsv.gz`).
"""

from __future__ import annotations

from typing import Final

TRANSACTIONS: Final = """
BEGIN = BEGIN [WORK] -> Transaction "BEGIN"
COMMIT = COMMIT [WORK] [ending] -> Transaction "COMMIT"
ROLLBACK = ROLLBACK [WORK] {
    TO [SAVEPOINT] name:name -> Transaction "ROLLBACK TO" | [ending] -> Transaction "ROLLBACK" }
ending =
    options:{AND CHAIN} [options:{NO RELEASE}]
  | options:{AND NO CHAIN} [release]
  | release
release = options:RELEASE | options:{NO RELEASE}
SAVEPOINT = SAVEPOINT name:name -> Transaction "SAVEPOINT"
RELEASE = RELEASE SAVEPOINT name:name -> Transaction "RELEASE SAVEPOINT"
XA = XA {
    {START | BEGIN} xid [options:{JOIN | RESUME}] -> Transaction "XA START"
  | END xid [options:{SUSPEND [FOR MIGRATE]}] -> Transaction "XA END"
  | PREPARE xid -> Transaction "XA PREPARE"
  | COMMIT xid [options:{ONE PHASE}] -> Transaction "XA COMMIT"
  | ROLLBACK xid -> Transaction "XA ROLLBACK"
  | RECOVER [CONVERT XID @mysql | FORMAT = name_or_text @mariadb] -> Transaction "XA RECOVER"
  | "what XA is to do" }
xid = xid:bytes [, xid:bytes [, xid:format]]

START = START {
    TRANSACTION [{ options:{WITH CONSISTENT SNAPSHOT} | options:{READ ONLY}
      | options:{READ WRITE} }, ...] -> begun
  | words:{ALL {SLAVES | REPLICAS} [threads]} -> command "START" @mariadb
  | words:{ {SLAVE @mariadb|mysql<8.4 | REPLICA @mariadb|mysql>=8.0.22} [string @mariadb]
      [threads] [UNTIL until] [USER = string @mysql] [PASSWORD = string @mysql]
      [DEFAULT_AUTH = string @mysql] [PLUGIN_DIR = string @mysql] [channel] } -> command "START"
  | words:GROUP_REPLICATION [{ {USER | PASSWORD | DEFAULT_AUTH} = string}, ...]
    -> command "START" @mysql }
STOP = STOP {
    words:{ALL {SLAVES | REPLICAS} [threads]} -> command "STOP" @mariadb
  | words:{ {SLAVE @mariadb|mysql<8.4 | REPLICA @mariadb|mysql>=8.0.22} [string @mariadb]
      [threads] [channel] } -> command "STOP"
  | words:GROUP_REPLICATION -> command "STOP" @mysql }
threads = {IO_THREAD | SQL_THREAD}, ...
channel = FOR CHANNEL string
until = { MASTER_LOG_FILE = string @mariadb|mysql<8.4 | MASTER_LOG_POS = number @mariadb|mysql<8.4
    | SOURCE_LOG_FILE = string @mysql>=8.0.22 | SOURCE_LOG_POS = number @mysql>=8.0.22
    | RELAY_LOG_FILE = string | RELAY_LOG_POS = number }, ...
  | MASTER_GTID_POS = string @mariadb
  | {SQL_BEFORE_GTIDS | SQL_AFTER_GTIDS} = string @mysql|mariadb>=11.3
  | SQL_AFTER_MTS_GAPS @mysql
"""
PROGRAMS: Final = """
PREPARE = PREPARE name:name FROM source:prepared -> Prepare "PREPARE"
EXECUTE = EXECUTE {
    immediate_next IMMEDIATE source:prepared [using] -> Prepare "EXECUTE IMMEDIATE" @mariadb>=10.2
  | name:name [using] -> Prepare "EXECUTE" }
using = USING using:used, ...
DEALLOCATE = DEALLOCATE PREPARE name:name -> Prepare "DEALLOCATE"
SIGNAL = SIGNAL condition:condition [signalled] -> Diagnostics "SIGNAL"
RESIGNAL = RESIGNAL [condition:condition] [signalled] -> Diagnostics "RESIGNAL"
signalled = SET items:signal_item, ...
signal_item = name:{ CLASS_ORIGIN | SUBCLASS_ORIGIN | CONSTRAINT_CATALOG | CONSTRAINT_SCHEMA
  | CONSTRAINT_NAME | CATALOG_NAME | SCHEMA_NAME | TABLE_NAME | COLUMN_NAME | CURSOR_NAME
  | MESSAGE_TEXT | MYSQL_ERRNO | ROW_NUMBER @mariadb>=10.7 } = value:signal_value -> setting
GET = GET [CURRENT | STACKED @mysql] DIAGNOSTICS {
    CONDITION {number | user_variable | name} { targets:variable = names:{
        CLASS_ORIGIN | SUBCLASS_ORIGIN | CONSTRAINT_CATALOG | CONSTRAINT_SCHEMA | CONSTRAINT_NAME
      | CATALOG_NAME | SCHEMA_NAME | TABLE_NAME | COLUMN_NAME | CURSOR_NAME | MESSAGE_TEXT
      | MYSQL_ERRNO | RETURNED_SQLSTATE | ROW_NUMBER @mariadb>=10.7 } }, ...
  | { targets:variable = names:{NUMBER | ROW_COUNT} }, ... } -> diagnostics
BINLOG = BINLOG {string | user_variable , user_variable @mariadb} -> BinlogStatement

# In bodies
declaration = name:name {
    CONDITION FOR value:handled -> ConditionDeclaration
  | [SENSITIVE | INSENSITIVE] CURSOR [( {[IN] parameters:name type}, ... )] FOR query:query
    -> CursorDeclaration
  | [{, name:name} ...] type:type
    [DEFAULT default:expression | := default:expression @mariadb] -> variables }
return = RETURN {nothing_more @oracle | value:expression} -> Return
leave = LEAVE label:name -> Leave
iterate = ITERATE label:name -> Iterate
open = OPEN opened -> Open
opened = cursor:name [( ) | ( arguments:expression, ... )] -> Open
fetch = FETCH {
    GROUP+NEXT ROW cursor:"" | [NEXT FROM | FROM] cursor:name INTO variables:variable, ... } -> Fetch
close = CLOSE cursor:name -> Close
"""
ADMINISTRATION: Final = """
USE = USE name:database_name -> Administration "USE"
LOCK = LOCK {
    {TABLES | TABLE} tables:locked, ... [lock_wait] -> Lock "LOCK TABLES"
  | INSTANCE FOR BACKUP -> Lock "LOCK INSTANCE" @mysql>=8 }
UNLOCK = UNLOCK {
    {TABLES | TABLE} -> Lock "UNLOCK TABLES"
  | INSTANCE -> Lock "UNLOCK INSTANCE" @mysql>=8 }
locked = name:object [AS alias:name | !{READ WRITE LOW_PRIORITY} alias:name]
  words:{ READ [LOCAL] | WRITE [CONCURRENT @mariadb] | LOW_PRIORITY WRITE @mariadb|mysql<8 } -> locked
lock_wait = {NOWAIT | WAIT digits} @mariadb

FLUSH = FLUSH [unlogged] {
    {TABLE | TABLES} [
        options:{WITH READ LOCK} [AND DISABLE CHECKPOINT @mariadb]
      | tables:object, ... [ options:{WITH READ LOCK} [AND DISABLE CHECKPOINT @mariadb]
        | options:{FOR EXPORT} ] ] -> Administration "FLUSH TABLES"
  | words:{flushed, ...} -> command "FLUSH"
  | "what to flush" }
flushed = [ERROR | ENGINE | GENERAL | SLOW] LOGS
  | BINARY LOGS [DELETE_DOMAIN_ID = ( [number, ...] ) @mariadb]
  | RELAY LOGS [channel | string @mariadb]
  | PRIVILEGES | STATUS | USER_RESOURCES | {GLOBAL | SESSION} STATUS @mariadb>=11.5
  | HOSTS @mariadb|mysql<8.4 | QUERY CACHE @mariadb|mysql<8 | DES_KEY_FILE @mariadb|mysql<8
  | OPTIMIZER_COSTS @mysql | MASTER @mariadb | {SLAVE | REPLICA} [string] @mariadb
  | { TABLE_STATISTICS | INDEX_STATISTICS | USER_STATISTICS | CLIENT_STATISTICS | USER_VARIABLES
    | SSL | THREADS } @mariadb

ANALYZE = ANALYZE {
    [unlogged] {TABLE | TABLES} tables:object, ... [
        PERSISTENT FOR { ALL | COLUMNS {ALL | ( [name, ...] )} INDEXES {ALL | ( [key_name, ...] )} }
        @mariadb
      | UPDATE HISTOGRAM ON name, ... [USING DATA string | WITH number BUCKETS]
        [{AUTO | MANUAL} UPDATE @mysql>=8.2] @mysql>=8
      | DROP HISTOGRAM ON name, ... @mysql>=8 ] -> Administration "ANALYZE TABLE"
  | [FORMAT = name_or_text] statement:explainable -> Administration "ANALYZE" @mariadb
  | "TABLE" }
OPTIMIZE = OPTIMIZE [unlogged] {TABLE | TABLES} tables:object, ... [wait]
  -> Administration "OPTIMIZE TABLE"
REPAIR = REPAIR [unlogged] {
    {TABLE | TABLES} tables:object, ... [{QUICK | EXTENDED | USE_FRM | FORCE @mariadb>=11.5} ...]
    -> Administration "REPAIR TABLE"
  | VIEW tables:object, ... [FROM MYSQL | FOR UPGRADE] -> Administration "REPAIR VIEW" @mariadb }
CHECK = CHECK {
    {TABLE | TABLES} tables:object, ...
    [{QUICK | FAST | MEDIUM | EXTENDED | CHANGED | FOR UPGRADE} ...] -> Administration "CHECK TABLE"
  | VIEW tables:object, ... [FOR UPGRADE] -> Administration "CHECK VIEW" @mariadb }
unlogged = options:{NO_WRITE_TO_BINLOG | LOCAL}
key_name = PRIMARY | name
CHECKSUM = CHECKSUM {TABLE | TABLES} tables:object, ... [QUICK | EXTENDED]
  -> Administration "CHECKSUM TABLE"

EXPLAIN = verb:EXPLAIN explained -> Administration
DESCRIBE = verb:DESCRIBE explained -> Administration
DESC = verb:DESC explained -> Administration
explained =
    options:ANALYZE [explain_format] {FOR+CONNECTION number | explained_statement} @mysql>=8.0.18
  | explain_format [ANALYZE @mariadb] {FOR+CONNECTION connection | explained_statement}
  | FOR+CONNECTION connection
  | explained_statement
  | {EXTENDED | PARTITIONS} &{SELECT INSERT REPLACE UPDATE DELETE WITH (} statement:explainable
    @mariadb|mysql<8
  | tables:object [name | string]
explain_format = FORMAT &= = name_or_text [INTO user_variable @mysql>=8.1]
explained_statement = [FOR {SCHEMA | DATABASE} name @mysql>=8.3] statement:explainable
connection = expression @mariadb | number

SHOW = words:shown -> command
shown = SHOW {
    {DATABASES | SCHEMAS} [filter]
  | EXTENDED { [FULL] {shown_tables | shown_columns} | shown_index } @mysql>=8
  | [FULL] {shown_tables | shown_columns | TRIGGERS [within] [filter] | PROCESSLIST}
  | shown_index
  | {EVENTS | TABLE STATUS | OPEN TABLES} [within] [filter]
  | PLUGINS [SONAME [string | filter] @mariadb]
  | ENGINE {ALL | name_or_text} {STATUS | MUTEX | LOGS} | [STORAGE] ENGINES
  | BINARY {LOGS | LOG STATUS @mysql>=8.2}
  | MASTER {LOGS | STATUS} @mariadb|mysql<8.4
  | BINLOG { EVENTS [IN string] [FROM number] [limit] | STATUS @mariadb>=10.5 }
  | RELAYLOG [string @mariadb] EVENTS [IN string] [FROM number] [limit] [channel]
  | SLAVE { [string @mariadb] STATUS [channel] | HOSTS } @mariadb|mysql<8.4
  | REPLICA { [string @mariadb] STATUS [channel] | HOSTS @mariadb } @mariadb>=10.5|mysql>=8.0.22
  | REPLICAS @mysql>=8.0.22 | ALL {SLAVES | REPLICAS} STATUS @mariadb
  | COUNT ( * ) {WARNINGS | ERRORS} | {WARNINGS | ERRORS} [limit]
  | PROFILES
  | PROFILE [{ ALL | CPU | IPC | MEMORY | SOURCE | SWAPS | BLOCK IO | CONTEXT SWITCHES
      | PAGE FAULTS }, ...] [FOR QUERY number] [limit]
  | [GLOBAL | SESSION | LOCAL] {STATUS | VARIABLES} [filter]
  | {charset | COLLATION} [filter]
  | PRIVILEGES | {AUTHORS | CONTRIBUTORS} @mariadb
  | GRANTS [FOR account [USING account, ... @mysql>=8]]
  | CREATE {
        {DATABASE | SCHEMA} [IF NOT EXISTS] name
      | {TABLE | VIEW | PROCEDURE | FUNCTION | TRIGGER | EVENT} object
      | {SEQUENCE | PACKAGE [BODY]} object @mariadb
      | USER {account | @mariadb}
      | SERVER name_or_text @mariadb>=11.8 | LIBRARY object @mysql>=9.2 }
  | {PROCEDURE | FUNCTION | PACKAGE [BODY] @mariadb} {STATUS [filter] | CODE object}
  | LIBRARY STATUS [filter] @mysql>=9.2
  | {CLIENT_STATISTICS | USER_STATISTICS | TABLE_STATISTICS | INDEX_STATISTICS}
    [WHERE condition:expression] @mariadb
  | {EXPLAIN | ANALYZE} [FORMAT = name_or_text] FOR expression @mariadb
  | "what to show" }
shown_tables = TABLES [within] [filter]
shown_columns = {COLUMNS | FIELDS} {FROM | IN} tables:object [within] [filter]
shown_index = {INDEX | INDEXES | KEYS} {FROM | IN} tables:object [within] [WHERE condition:expression]
within = {FROM | IN} name
filter = LIKE string | WHERE condition:expression

HELP = HELP name_or_text -> Administration "HELP"
KILL = KILL [{HARD | SOFT} @mariadb] [CONNECTION | QUERY] {
    USER account @mariadb | [ID @mariadb] expression } -> Administration "KILL"
INSTALL = words:{INSTALL {
    PLUGIN [IF NOT EXISTS @mariadb] names:name SONAME string
  | SONAME string @mariadb
  | COMPONENT names:text, ... [SET {
      [GLOBAL | PERSIST] name [. name] {= | :=} {ON | expression} }, ... @mysql>=8.0.33] @mysql>=8 }}
  -> command
UNINSTALL = words:{UNINSTALL {
    PLUGIN [IF EXISTS @mariadb] names:name
  | SONAME [IF EXISTS] string @mariadb
  | COMPONENT names:text, ... @mysql>=8 }} -> command
RESET = words:{RESET { PERSIST [[IF EXISTS] name [. name]] @mysql>=8 | {
    MASTER [TO number] @mariadb|mysql<8.4
  | BINARY LOGS AND GTIDS [TO number] @mysql>=8.2
  | SLAVE [string @mariadb] [ALL] [channel] @mariadb|mysql<8.4
  | REPLICA [string @mariadb] [ALL] [channel] @mariadb>=10.5|mysql>=8.0.22
  | QUERY CACHE @mariadb|mysql<8 }, ... }} -> command
PURGE = words:{PURGE {BINARY | MASTER @mariadb|mysql<8.4} LOGS {TO string | BEFORE condition:expression}}
  -> command
CACHE = CACHE INDEX object {
    in_partitions [keys] | [keys] [{, object [keys]} ...] } IN {DEFAULT | name}
  -> Administration "CACHE INDEX"
LOAD = LOAD INDEX INTO CACHE object {
    in_partitions [keys] [IGNORE LEAVES]
  | [keys] [IGNORE LEAVES] [{, object [keys] [IGNORE LEAVES]} ...] } -> Administration "LOAD INDEX"
in_partitions = PARTITION ( {ALL | name, ...} )
keys = {KEY | INDEX} ( [key_name, ...] )
SHUTDOWN = SHUTDOWN [WAIT FOR ALL {SLAVES | REPLICAS} @mariadb] -> Administration "SHUTDOWN"
RESTART = RESTART -> Administration "RESTART" @mysql>=8 | "a statement"
CLONE = words:{CLONE {
    LOCAL DATA DIRECTORY [=] string
  | INSTANCE FROM account : number IDENTIFIED BY string [DATA DIRECTORY [=] string]
    [REQUIRE [NO] SSL] }} -> command @mysql>=8.0.17 | "a statement"
IMPORT = IMPORT TABLE FROM string, ... -> Administration "IMPORT TABLE" @mysql>=8 | "a statement"
BACKUP = words:{BACKUP {STAGE name | LOCK object | UNLOCK}} -> command @mariadb>=10.4
  | "a statement"
SET = SET RESOURCE GROUP name [FOR number [{[,] number} ...]] -> Administration "SET RESOURCE GROUP"

CHANGE = words:{CHANGE {
    MASTER [string @mariadb] TO master_option, ... [channel] @mariadb|mysql<8.4
  | REPLICATION {
        SOURCE TO source_option, ... [channel] @mysql>=8.0.23
      | FILTER replication_filter, ... [channel] } @mysql }} -> command
master_option = { MASTER_HOST | MASTER_USER | MASTER_PASSWORD | MASTER_LOG_FILE | MASTER_SSL_CA
    | MASTER_SSL_CAPATH | MASTER_SSL_CERT | MASTER_SSL_CIPHER | MASTER_SSL_KEY | MASTER_SSL_CRL
    | MASTER_SSL_CRLPATH | RELAY_LOG_FILE } = string
  | { MASTER_BIND | MASTER_TLS_VERSION | MASTER_PUBLIC_KEY_PATH | MASTER_COMPRESSION_ALGORITHMS
    | NETWORK_NAMESPACE } = string @mysql
  | { MASTER_PORT | MASTER_CONNECT_RETRY | MASTER_DELAY | MASTER_SSL | MASTER_LOG_POS
    | MASTER_SSL_VERIFY_SERVER_CERT | RELAY_LOG_POS } = number
  | { MASTER_RETRY_COUNT | MASTER_AUTO_POSITION | GET_MASTER_PUBLIC_KEY | REQUIRE_ROW_FORMAT
    | MASTER_ZSTD_COMPRESSION_LEVEL | SOURCE_CONNECTION_AUTO_FAILOVER | GTID_ONLY } = number @mysql
  | MASTER_HEARTBEAT_PERIOD = digits
  | IGNORE_SERVER_IDS = ( [number, ...] )
  | MASTER_USE_GTID = {CURRENT_POS | SLAVE_POS | REPLICA_POS | NO} @mariadb
  | {MASTER_DEMOTE_TO_SLAVE | MASTER_DEMOTE_TO_REPLICA} = number @mariadb>=10.10
  | {DO_DOMAIN_IDS | IGNORE_DOMAIN_IDS} = ( [number, ...] ) @mariadb
  | MASTER_TLS_CIPHERSUITES = {NULL | string} @mysql | privileged_option @mysql
source_option = { SOURCE_HOST | SOURCE_BIND | SOURCE_USER | SOURCE_PASSWORD | SOURCE_LOG_FILE
    | SOURCE_SSL_CA | SOURCE_SSL_CAPATH | SOURCE_SSL_CERT | SOURCE_SSL_CIPHER | SOURCE_SSL_KEY
    | SOURCE_SSL_CRL | SOURCE_SSL_CRLPATH | SOURCE_TLS_VERSION | SOURCE_PUBLIC_KEY_PATH
    | SOURCE_COMPRESSION_ALGORITHMS | NETWORK_NAMESPACE | RELAY_LOG_FILE } = string
  | { SOURCE_PORT | SOURCE_CONNECT_RETRY | SOURCE_RETRY_COUNT | SOURCE_DELAY | SOURCE_SSL
    | SOURCE_SSL_VERIFY_SERVER_CERT | SOURCE_LOG_POS | SOURCE_AUTO_POSITION | RELAY_LOG_POS
    | GET_SOURCE_PUBLIC_KEY | SOURCE_ZSTD_COMPRESSION_LEVEL | SOURCE_CONNECTION_AUTO_FAILOVER
    | REQUIRE_ROW_FORMAT | GTID_ONLY } = number
  | SOURCE_HEARTBEAT_PERIOD = digits
  | IGNORE_SERVER_IDS = ( [number, ...] )
  | SOURCE_TLS_CIPHERSUITES = {NULL | string}
  | privileged_option
privileged_option = PRIVILEGE_CHECKS_USER = {NULL | account}
  | REQUIRE_TABLE_PRIMARY_KEY_CHECK = {ON | OFF | STREAM | GENERATE}
  | ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = {OFF | LOCAL | string}
replication_filter = {REPLICATE_DO_DB | REPLICATE_IGNORE_DB} = ( [name, ...] )
  | {REPLICATE_DO_TABLE | REPLICATE_IGNORE_TABLE} = ( [{name . name}, ...] )
  | {REPLICATE_WILD_DO_TABLE | REPLICATE_WILD_IGNORE_TABLE} = ( [string, ...] )
  | REPLICATE_REWRITE_DB = ( [{( name , name )}, ...] )
"""
