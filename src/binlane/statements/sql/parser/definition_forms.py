"""The grammar of CREATE, ALTER, DROP and RENAME: of tables and of all else but accounts.

The signs of the grammar are those of `notation`; the nodes are those of `tree.definitions`.

Source: MySQL 9.7, sql/sql_yacc.yy; MariaDB 11.8, sql/sql_yacc.yy.
"""

from __future__ import annotations

from typing import Final

OBJECTS: Final = """
CREATE = CREATE { is_or_replace:{OR REPLACE} { created @mariadb | replaced @!mariadb } | created }
created =
    TABLE new_table
  | is_external:EXTERNAL TABLE new_table @mysql>=9
  | is_temporary:TEMPORARY { TABLE new_table | SEQUENCE new_sequence @mariadb }
  | SEQUENCE new_sequence @mariadb
  | [kind:UNIQUE] INDEX index_columns [key_option ...] index_end
  | kind:FULLTEXT INDEX index_columns [fulltext_option ...] index_end
  | kind:SPATIAL INDEX index_columns [other_key_option ...] index_end
  | kind:VECTOR INDEX index_columns [other_key_option ...] index_end @mariadb>=11.7
  | {DATABASE | SCHEMA} if_exists:[IF NOT EXISTS] name:database [options:database_option ...]
    -> Database "CREATE DATABASE"
  | SERVER if_exists:[IF NOT EXISTS @mariadb] name:named FOREIGN DATA WRAPPER named server_options
    -> ObjectStatement "CREATE SERVER"
  | words:UNDO TABLESPACE name:single words:ADD DATAFILE string [space_options]
    -> ObjectStatement "CREATE TABLESPACE" @mysql>=8
  | TABLESPACE name:single [words:ADD DATAFILE string] [words:USE LOGFILE GROUP name]
    [space_options] -> ObjectStatement "CREATE TABLESPACE" @mysql
  | LOGFILE GROUP added_file -> ObjectStatement "CREATE LOGFILE" @mysql
  | RESOURCE GROUP name:single TYPE [=] {SYSTEM | USER} [vcpus] [priority] [ENABLE | DISABLE]
    -> ObjectStatement "CREATE RESOURCE" @mysql>=8
  | LIBRARY if_not_exists:[IF NOT EXISTS] name:object [COMMENT comment:string]
    LANGUAGE language:name [COMMENT comment:string] AS code:bytes
    -> CreateLibrary "CREATE LIBRARY" @mysql>=9.2
  | SPATIAL+REFERENCE SYSTEM if_exists:[IF NOT EXISTS] reference_system @mysql>=8
  | algorithm [materialized @mysql>=9.4] [definer] [security] VIEW new_view
  | materialized [definer] [security] VIEW new_view @mysql>=9.4
  | duality VIEW new_view @mysql>=9.4
  | [definer] {
      security VIEW new_view
    | VIEW new_view
    | package @mariadb
    | EVENT if_exists:[IF NOT EXISTS] name:object ON SCHEDULE schedule [completion] [ability]
      [COMMENT comment:string] DO body_at:^ body:body -> Event "CREATE EVENT"
    | TRIGGER if_not_exists:[if_new] name:object
      time:{BEFORE | AFTER} trigger_event [{OR trigger_event} ... @mariadb>=12]
      ON table:object FOR EACH ROW [order_at:^ order:{FOLLOWS | PRECEDES} order:name]
      body_at:^ body:body -> CreateTrigger
    | PROCEDURE if_not_exists:[if_new] name:object {
          parameters routine | routine @oracle } -> CreateRoutine "CREATE PROCEDURE"
    | is_aggregate:AGGREGATE FUNCTION if_not_exists:[if_new] name:object
      RETURNS returns:loadable SONAME soname:text -> CreateRoutine "CREATE FUNCTION" @!mariadb
    | is_aggregate:[AGGREGATE @mariadb] FUNCTION if_not_exists:[if_new] name:object {
          RETURNS returns:loadable SONAME soname:text
        | function_parameters {RETURNS | RETURN @oracle} result routine
        | RETURN result routine @oracle } -> CreateRoutine "CREATE FUNCTION" }
  | "a kind of object"

reference_system = number:number [ { {NAME | DEFINITION | DESCRIPTION} string
    | ORGANIZATION string IDENTIFIED BY number } ... ]
  -> ObjectStatement "CREATE SPATIAL REFERENCE SYSTEM"
replaced =
    algorithm [materialized @mysql>=9.4] [definer] [security] VIEW view
    -> CreateView "CREATE VIEW"
  | materialized [definer] [security] VIEW view -> CreateView "CREATE VIEW" @mysql>=9.4
  | duality VIEW view -> CreateView "CREATE VIEW" @mysql>=9.4
  | [definer] [security] VIEW view -> CreateView "CREATE VIEW"
  | SPATIAL+REFERENCE SYSTEM reference_system @mysql>=8
  | "a kind of object"
new_view = if_not_exists:[IF NOT EXISTS @mariadb|mysql>=9.1] view -> CreateView "CREATE VIEW"
view = name:object [( columns:name, ... )] AS query_at:^ query:query
  [WITH [CASCADED | LOCAL] CHECK OPTION]
algorithm = ALGORITHM = algorithm:{MERGE | TEMPTABLE | UNDEFINED}
materialized = MATERIALIZED kind:"MATERIALIZED"
duality = JSON [RELATIONAL] DUALITY kind:"JSON DUALITY"
definer = DEFINER = definer:account
security = SQL SECURITY security:{DEFINER | INVOKER}
if_new = IF NOT EXISTS @mariadb|mysql>=8.0.29
package = PACKAGE verb:"CREATE PACKAGE" [BODY verb:"CREATE PACKAGE BODY"]
  if_exists:[IF NOT EXISTS] name:object [package_characteristic ...] {
      rest @any | {AS | IS} rest @oracle | !{AS IS} rest @!oracle @mariadb>=11.4
    | "what a package may hold" } -> ObjectStatement
package_characteristic = COMMENT string | SQL SECURITY {DEFINER | INVOKER}

database_option = [DEFAULT] {
    charset [=] charset_value name:"CHARACTER SET"
  | COLLATE [=] name:"COLLATE" value:collation_name
  | name:ENCRYPTION [=] value:text @mysql>=8 } -> TableOption
  | name:COMMENT [=] value:text -> TableOption @mariadb>=10.5
changed_option = database_option
  | name:{READ ONLY} [=] value:ternary -> TableOption @mysql>=8.0.22
charset_value = value:charset_name @mariadb | !DEFAULT value:charset_name
charset = {CHARACTER | CHAR} SET | CHARSET

trigger_event = events:{INSERT | DELETE} | events:UPDATE [OF name, ... @mariadb>=11.8]

schedule = AT schedule:expression
  | EVERY schedule:expression unit [STARTS schedule:expression] [ENDS schedule:expression]
completion = ON COMPLETION [NOT] PRESERVE
ability = ENABLE | DISABLE [ON {SLAVE | REPLICA}]

parameters = parameters_at:^ ( [parameters:parameter, ...] ) parameters_end:$
function_parameters =
    parameters @mariadb>=10.8
  | parameters_at:^ ( [parameters:value_parameter, ...] ) parameters_end:$
parameter =
    [direction:{IN | OUT | INOUT}] value -> RoutineParameter @!oracle
  | name:name [direction] type:type [default] -> RoutineParameter @oracle
direction = IN { OUT direction:"INOUT" | direction:"IN" } | direction:{OUT | INOUT}
value_parameter = value -> RoutineParameter
value = name:name type:type [default]
default = {DEFAULT | :=} default:expression @mariadb>=11.8
loadable = name:{STRING | REAL | DECIMAL | INTEGER | INT} -> DataType
result = returns:type @any|oracle|mariadb>=11.8 | returns:own_type
routine = [characteristic ...] {
    LANGUAGE !SQL language:name [characteristic ...] [USING ( libraries:library, ... )]
    [characteristic ...] body_at:^ AS code:bytes @mysql>=9
  | body_at:^ {AS | IS} rest @any|oracle
  | body_at:^ body:body }
library = name:object [AS alias:name | alias:name] -> UsedLibrary
characteristic = COMMENT comment:string | characteristics:fixed
  | characteristics:{[NOT] DETERMINISTIC}
fixed = LANGUAGE+SQL @mysql>=9 | LANGUAGE SQL @!mysql>=9 | CONTAINS SQL | NO SQL
  | READS SQL DATA | MODIFIES SQL DATA
  | SQL SECURITY {DEFINER | INVOKER}

server_options = OPTIONS ( {
    PORT {number | string @mariadb>=11.7} | {HOST | DATABASE | USER | PASSWORD | SOCKET | OWNER} string
  | name string @mariadb>=11.7 | "an option" }, ... )
space_options = {space_option [,]} ...
space_option = words:{COMMENT | ENCRYPTION | ENGINE_ATTRIBUTE} [=] string
  | words:{ EXTENT_SIZE | INITIAL_SIZE | AUTOEXTEND_SIZE | MAX_SIZE | FILE_BLOCK_SIZE
    | UNDO_BUFFER_SIZE | REDO_BUFFER_SIZE } [=] size
  | words:NODEGROUP [=] number | {words:STORAGE ENGINE | words:ENGINE} [=] named
  | words:{WAIT | NO_WAIT}
added_file = name:single words:ADD {UNDOFILE | REDOFILE} string [space_options]
vcpus = VCPU [=] cpus [{[,] cpus} ...]
cpus = number [- number]
priority = THREAD_PRIORITY [=] [-] number

ALTER = ALTER {
    [modifiers:ONLINE @mariadb] [modifiers:IGNORE @mariadb] TABLE changed_table
  | {DATABASE | SCHEMA} {
        options:changed_option ... name:none
      | name:database {
            UPGRADE DATA DIRECTORY NAME @mariadb|mysql<8 | options:changed_option ... } }
    -> Database "ALTER DATABASE"
  | SEQUENCE changed_sequence @mariadb
  | PROCEDURE changed_routine -> ObjectStatement "ALTER PROCEDURE"
  | FUNCTION changed_routine -> ObjectStatement "ALTER FUNCTION"
  | SERVER name:named server_options -> ObjectStatement "ALTER SERVER"
  | words:UNDO TABLESPACE name:single words:SET {ACTIVE | INACTIVE} [space_options]
    -> ObjectStatement "ALTER TABLESPACE" @mysql>=8
  | TABLESPACE name:single {
        words:{ADD | DROP} DATAFILE string [space_options] | words:RENAME TO name
      | space_options } -> ObjectStatement "ALTER TABLESPACE" @mysql
  | LOGFILE GROUP added_file -> ObjectStatement "ALTER LOGFILE" @mysql
  | RESOURCE GROUP name:single [vcpus] [priority] [ENABLE | DISABLE] [FORCE]
    -> ObjectStatement "ALTER RESOURCE" @mysql>=8
  | INSTANCE { ROTATE {INNODB | BINLOG} MASTER KEY | {ENABLE | DISABLE} INNODB REDO_LOG
      | RELOAD { TLS [FOR CHANNEL name] [NO ROLLBACK ON ERROR] | KEYRING } }
    -> ObjectStatement "ALTER INSTANCE" @mysql
  | LIBRARY name:object COMMENT string -> ObjectStatement "ALTER LIBRARY" @mysql>=9.2
  | materialized [definer] [security] VIEW view -> CreateView "ALTER VIEW" @mysql>=9.4
  | duality VIEW view -> CreateView "ALTER VIEW" @mysql>=9.4
  | algorithm [materialized @mysql>=9.4] [definer] [security] VIEW view
    -> CreateView "ALTER VIEW"
  | [definer] {
      [security] VIEW view -> CreateView "ALTER VIEW"
    | EVENT name:object &{ON RENAME ENABLE DISABLE COMMENT DO}
      [ON+SCHEDULE schedule] [completion] [RENAME TO new_name:object] [ability]
      [COMMENT comment:string] [DO body_at:^ body:body] -> Event "ALTER EVENT" }
  | "a kind of object" }
changed_routine = name:object [{
    words:COMMENT string | words:fixed | words:{LANGUAGE !SQL name} @mysql>=9
  | USING ( [libraries:library, ...] ) @mysql>=9.2 } ...]

DROP = DROP {
    is_temporary:TEMPORARY {dropped_table | dropped_sequence @mariadb}
  | dropped_table
  | dropped_sequence @mariadb
  | VIEW dropped option:[RESTRICT | CASCADE] -> DropTables "DROP VIEW"
  | INDEX if_exists:[IF EXISTS @mariadb] name:name ON table:object [wait] [index_lock ... @mysql]
    -> DropIndex
  | {DATABASE | SCHEMA} if_exists:[IF EXISTS] name:database -> Database "DROP DATABASE"
  | PROCEDURE dropped_object -> ObjectStatement "DROP PROCEDURE"
  | FUNCTION dropped_object -> ObjectStatement "DROP FUNCTION"
  | TRIGGER dropped_object -> ObjectStatement "DROP TRIGGER"
  | EVENT dropped_object -> ObjectStatement "DROP EVENT"
  | LIBRARY dropped_object -> ObjectStatement "DROP LIBRARY" @mysql>=9.2
  | PACKAGE verb:"DROP PACKAGE" [BODY verb:"DROP PACKAGE BODY"] dropped_object
    -> ObjectStatement @mariadb
  | SERVER if_exists:[IF EXISTS] name:named -> ObjectStatement "DROP SERVER"
  | SPATIAL REFERENCE SYSTEM if_exists:[IF EXISTS] number:number
    -> ObjectStatement "DROP SPATIAL REFERENCE SYSTEM" @mysql>=8
  | words:[UNDO @mysql>=8] TABLESPACE name:single [space_options]
    -> ObjectStatement "DROP TABLESPACE" @mysql
  | LOGFILE GROUP name:single [space_options] -> ObjectStatement "DROP LOGFILE" @mysql
  | RESOURCE GROUP name:single [FORCE] -> ObjectStatement "DROP RESOURCE" @mysql>=8
  | PREPARE name:name -> Prepare "DEALLOCATE"
  | "a kind of object" }
dropped_table = {TABLE | TABLES} dropped [wait] option:[RESTRICT | CASCADE]
  -> DropTables "DROP TABLE"
dropped_sequence = SEQUENCE dropped -> DropTables "DROP SEQUENCE"
dropped = if_exists:[IF EXISTS] names:object, ...
dropped_object = if_exists:[IF EXISTS] name:object

RENAME = RENAME {TABLE | TABLES} if_exists:[IF EXISTS @mariadb] pairs:renamed, ... -> RenameTables
TRUNCATE = TRUNCATE [TABLE] names:object [wait] [{DROP | REUSE} STORAGE @oracle]
  -> DropTables "TRUNCATE TABLE"
renamed = old:object [wait] TO new:object -> pair
wait = {NOWAIT | WAIT number} @mariadb
"""
TABLES: Final = """
new_table = if_not_exists:[IF NOT EXISTS] name:object {
    LIKE like:object
  | ( LIKE like:object )
  | [columns_next elements_at:^ ( elements:element, ... ) elements_end:$] [table_options]
    [partitioning:partitioning]
    [on_existing:{IGNORE | REPLACE} [AS] query:query | AS query:query | query:query] }
  -> CreateTable

element =
    CONSTRAINT [constraint_name] {
        check | kind:FOREIGN KEY foreign_key | plain_kind named_key | "a constraint" }
  | check
  | kind:FOREIGN KEY foreign_key
  | key_kind named_key
  | fulltext_kind fulltext_key
  | other_kind other_key
  | period @mariadb
  | name:column_name definition
added_element =   # by ALTER TABLE: the same, but for IF NOT EXISTS
    CONSTRAINT {
        IF NOT EXISTS if_not_exists:"IF" constraint:name check @mariadb
      | [constraint_name] {
            check | kind:FOREIGN KEY if_added foreign_key | plain_kind if_added named_key
          | "a constraint" } }
  | check
  | kind:FOREIGN KEY if_added foreign_key
  | key_kind if_added named_key
  | fulltext_kind if_added fulltext_key
  | other_kind if_added other_key
if_added = if_not_exists:[IF NOT EXISTS @mariadb]
constraint_name = !{PRIMARY UNIQUE FOREIGN CHECK} constraint:name
period = PERIOD+FOR name ( name , name ) -> Period
check = CHECK ( condition_at:^ condition:expression condition_end:$ )
  [ENFORCED @mysql>=8 | is_unenforced:NOT+ENFORCED @mysql>=8] -> check

# Keys
plain_kind = kind:PRIMARY KEY | kind:UNIQUE [KEY | INDEX]
key_kind = plain_kind | {KEY | INDEX} kind:"KEY"
fulltext_kind = kind:FULLTEXT [KEY | INDEX]
other_kind = kind:SPATIAL [KEY | INDEX]
  | kind:VECTOR &{KEY INDEX (} [KEY | INDEX] @mariadb>=11.7
named_key = [name:name [{USING | TYPE} index_type] | USING index_type] ( parts:key_part, ... )
  [key_option ...] -> KeyDefinition
fulltext_key = [name:name] ( parts:key_part, ... ) [fulltext_option ...] -> KeyDefinition
other_key = [name:name] ( parts:key_part, ... ) [other_key_option ...] -> KeyDefinition
key_part = { ( expression:expression ) column:"" @mysql>=8.0.13
  | column:name [( length:number )] [is_period:{WITHOUT OVERLAPS} @mariadb] } [is_descending:DESC | ASC]
  -> KeyPart
plain_part = column:name [( length:number )] [is_descending:DESC | ASC] -> KeyPart
index_type = algorithm:{BTREE | HASH | RTREE}
key_option = {USING | TYPE} index_type | other_key_option
fulltext_option = WITH PARSER parser:name | other_key_option
other_key_option = COMMENT comment:string | KEY_BLOCK_SIZE [=] number | VISIBLE
  | words:INVISIBLE @mysql>=8
  | {ENGINE_ATTRIBUTE | SECONDARY_ENGINE_ATTRIBUTE} [=] string @mysql>=8
  | words:IGNORED @mariadb>=10.6 | words:{NOT IGNORED} @mariadb>=10.6
  | &CLUSTERING words:"CLUSTERING" engine_word = engine_value @mariadb
  | engine_word = engine_value @mariadb
foreign_key = [name:name] ( parts:plain_part, ... ) references:reference -> KeyDefinition
reference = REFERENCES table:object [( {columns:name [( number )] [ASC | DESC]}, ... )]
  [MATCH {FULL | PARTIAL | SIMPLE}]
  [ ON+DELETE on_delete:deed [ON+UPDATE on_update:deed]
  | ON+UPDATE on_update:deed [ON+DELETE on_delete:deed] ] -> Reference
deed = SET NULL | SET DEFAULT | NO ACTION | CASCADE | RESTRICT
index_columns = key_at:^ if_not_exists:[IF NOT EXISTS @mariadb] name:name
  [{USING | TYPE} index_type] ON table:object ( parts:key_part, ... )
index_end = key_end:$ [wait] [locks:index_lock ...] -> index
index_lock = ALGORITHM [=] how | LOCK [=] lock_kind
how = DEFAULT | INPLACE | COPY | INSTANT | NOCOPY @mariadb
lock_kind = DEFAULT | NONE | SHARED | EXCLUSIVE

# Columns
column = name:name definition
definition = type:column_type [{COLLATE collation:collation_name} ...] {
    [GENERATED ALWAYS] AS { ( generated_at:^ generated:expression generated_end:$ )
        storage:[VIRTUAL | STORED | PERSISTENT @mariadb] [generated_attribute ...]
      | storage:{ROW {START | END}} [row_attribute ...] @mariadb }
  | [attribute ...] }
  [checks:check @mariadb]
  [CONSTRAINT [name] references:reference @mariadb | references:reference] -> column
attribute = nullity | common | mysql_attribute @mysql
  | DEFAULT default_at:^ default:default_value default_end:$
  | ON+UPDATE on_update:now
  | is_auto_increment:AUTO_INCREMENT
  | is_auto_increment:SERIAL DEFAULT VALUE nullity:"NOT NULL" key:"UNIQUE"
  | COLLATE collation:collation_name
  | words:WITH+SYSTEM+VERSIONING @mariadb
  | words:WITHOUT+SYSTEM+VERSIONING @mariadb
  | words:REF_SYSTEM_ID = number @mariadb
  | words:COMPRESSED @mariadb<11.8
  | engine_word = engine_value @mariadb
nullity = nullity:{NOT NULL} [ENABLE @mariadb] | nullity:NULL | PRIMARY KEY key:"PRIMARY"
  | KEY key:"PRIMARY"
common = UNIQUE [KEY] key:"UNIQUE" | COMMENT comment:string | words:INVISIBLE
mysql_attribute = VISIBLE | SRID number @mysql>=8 | NOT SECONDARY
  | no_reference checks:column_check @mysql>=8
  | words:{COLUMN_FORMAT {DEFAULT | FIXED | DYNAMIC}} | words:{STORAGE {DEFAULT | DISK | MEMORY}}
  | {ENGINE_ATTRIBUTE | SECONDARY_ENGINE_ATTRIBUTE} [=] string
generated_attribute = common | nullity @mysql | COLLATE collation:collation_name @mysql
  | mysql_attribute @mysql
row_attribute = common | nullity | mysql_attribute @mysql
column_check = [CONSTRAINT [!CHECK constraint:name]] check

# Options
table_options = options:table_option [{[,] options:table_option} ...]
table_option =
    name:{MAX_ROWS | MIN_ROWS | AVG_ROW_LENGTH | AUTO_INCREMENT | CHECKSUM | TABLE_CHECKSUM
      | DELAY_KEY_WRITE | KEY_BLOCK_SIZE} [=] value:digits -> TableOption
  | name:{PACK_KEYS | STATS_AUTO_RECALC | STATS_PERSISTENT} [=] value:ternary -> TableOption
  | name:STATS_SAMPLE_PAGES [=] {value:DEFAULT | value:digits} -> TableOption
  | name:{TRANSACTIONAL | PAGE_CHECKSUM | SEQUENCE} [=] {value:DEFAULT | value:digits}
    -> TableOption @mariadb
  | name:{PASSWORD | COMMENT | CONNECTION} [=] value:text -> TableOption
  | name:{COMPRESSION | ENCRYPTION | ENGINE_ATTRIBUTE | SECONDARY_ENGINE_ATTRIBUTE} [=] value:text
    -> TableOption @mysql
  | name:ENGINE [=] value:name_or_text -> TableOption
  | name:SECONDARY_ENGINE [=] {value:NULL | value:name_or_text} -> TableOption @mysql
  | [DEFAULT &{CHARACTER CHAR CHARSET COLLATE}] {
        charset [=] charset_value name:"CHARACTER SET"
      | COLLATE [=] name:"COLLATE" value:collation_name } -> TableOption
  | name:ROW_FORMAT [=] value:{DEFAULT | DYNAMIC | FIXED | COMPRESSED | REDUNDANT | COMPACT
      | PAGE @mariadb} -> TableOption
  | name:INSERT_METHOD [=] value:{NO | FIRST | LAST} -> TableOption
  | name:UNION [=] ( [tables:object, ...] ) -> TableOption
  | name:DATA+DIRECTORY [=] value:text -> TableOption
  | name:INDEX+DIRECTORY [=] value:text -> TableOption
  | name:TABLESPACE [= @mysql] value:name -> TableOption
  | name:STORAGE value:{DISK | MEMORY} -> TableOption
  | name:START+TRANSACTION -> TableOption @mysql>=8.0.21
  | name:AUTOEXTEND_SIZE [=] value:size -> TableOption @mysql>=8.0.23
  | name:WITH+SYSTEM+VERSIONING -> TableOption @mariadb
  | name:engine_word = value:engine_value -> TableOption @mariadb

# Partitions
partitioning = PARTITION BY {
      kind:{RANGE COLUMNS | LIST COLUMNS} ( values:column_name_value, ... )
    | kind:{RANGE | LIST} ( values:expression )
    | kind:SYSTEM_TIME [INTERVAL limits:expression name [STARTS limits:expression] [AUTO]
      | LIMIT number [AUTO]] @mariadb
    | hash_or_key }
  [PARTITIONS count:number] [sub:subpartitioning] [( &PARTITION partitions:partition, ... )]
  -> Partitioning
subpartitioning = SUBPARTITION BY hash_or_key [SUBPARTITIONS count:number] -> Partitioning
hash_or_key = kind:{HASH | LINEAR+HASH} ( values:expression )
  | kind:{KEY | LINEAR+KEY} [ALGORITHM = one_or_two] ( [values:column_name_value, ...] )
partitions = kind:"" ( partitions:partition, ... ) -> Partitioning
one_partition = kind:"" partitions:partition -> Partitioning
partition = PARTITION name:name [
      VALUES { LESS THAN kind:"LESS THAN" values_at:^ {
          MAXVALUE | ( {MAXVALUE | values:expression}, ... ) } values_end:$
        | IN kind:"IN" values_at:^ ( values:expression, ... ) values_end:$ }
    | kind:{HISTORY | CURRENT | DEFAULT} @mariadb ]
  [options:partition_option ...] [( subpartitions:subpartition, ... )] -> Partition
subpartition = SUBPARTITION name:name_or_text [options:partition_option ...] -> Partition
partition_option =
    [STORAGE] ENGINE name:"ENGINE" [=] value:name_or_text -> TableOption
  | name:TABLESPACE [=] value:name -> TableOption
  | name:{NODEGROUP | MAX_ROWS | MIN_ROWS} [=] value:digits -> TableOption
  | name:COMMENT [=] value:text -> TableOption
  | name:DATA+DIRECTORY [=] value:text -> TableOption
  | name:INDEX+DIRECTORY [=] value:text -> TableOption
  | name:engine_word = value:engine_value -> TableOption @mariadb

# Sequences
new_sequence = if_exists:[IF NOT EXISTS] name:object [wait] [AS column_type @mariadb>=11.5]
  [{settings:setting | CYCLE | NOCYCLE} ...] [table_options] -> Sequence "CREATE SEQUENCE"
changed_sequence = if_exists:[IF EXISTS] name:object {
    settings:setting | settings:restart | CYCLE | NOCYCLE} ... -> Sequence "ALTER SEQUENCE"
setting =
    {NOMINVALUE | NO+MINVALUE} name:"MINVALUE" -> setting
  | {NOMAXVALUE | NO+MAXVALUE} name:"MAXVALUE" -> setting
  | NOCACHE name:"CACHE" value:zero -> setting
  | name:{MINVALUE | MAXVALUE | INCREMENT | CACHE} [BY | =] value:signed -> setting
  | name:START [WITH | =] value:signed -> setting
restart = name:RESTART [{WITH | =} value:signed | value:signed] -> setting

# ALTER TABLE
changed_table = modifiers:[IF EXISTS @mariadb] name:object [wait] {
    actions:alone
  | actions:repartitioning
  | nothing_more
  | alteration, ... [actions:repartitioning]
  | "an action of ALTER TABLE" } -> AlterTable
alteration = actions:action | {actions:option_action} ...
option_action = kind:"OPTION" option:table_option -> AlterAction
repartitioning = &PARTITION kind:"PARTITION BY" partitioning:partitioning -> AlterAction
  | kind:REMOVE+PARTITIONING -> AlterAction
alone =
    kind:{DISCARD TABLESPACE | IMPORT TABLESPACE} -> AlterAction
  | words:{SECONDARY_LOAD | SECONDARY_UNLOAD} kind:"FORCE" [PARTITION ( name, ... )]
    -> AlterAction @mysql>=8
  | kind:"PARTITION" on_partitions -> AlterAction
on_partitions =
    words:{REBUILD | OPTIMIZE | ANALYZE} PARTITION [local] all_or_names
  | words:CHECK PARTITION all_or_names [{QUICK | FAST | MEDIUM | EXTENDED | CHANGED
    | FOR UPGRADE} ...]
  | words:REPAIR PARTITION [local] all_or_names [{QUICK | EXTENDED | USE_FRM} ...]
  | words:ADD PARTITION [local] if_exists:[IF NOT EXISTS @mariadb]
    [PARTITIONS number | partitioning:partitions]
  | words:DROP PARTITION if_exists:[IF EXISTS @mariadb] words:name, ...
  | words:COALESCE PARTITION [local] number
  | words:REORGANIZE PARTITION [local] [words:name, ... INTO partitioning:partitions]
  | words:EXCHANGE PARTITION words:name WITH TABLE table:object [validation]
  | words:TRUNCATE PARTITION all_or_names
  | words:{DISCARD | IMPORT} PARTITION all_or_names TABLESPACE @mysql
  | CONVERT PARTITION words:"CONVERT" name:name TO TABLE table:object @mariadb
  | CONVERT TABLE words:"CONVERT TABLE" table:object TO partitioning:one_partition [validation]
    @mariadb
local = is_local:{NO_WRITE_TO_BINLOG | LOCAL}
all_or_names = words:ALL | words:name, ...
validation = {WITH | WITHOUT} VALIDATION @mysql|mariadb>=11.4
if_there = IF EXISTS @mariadb
action =
    kind:ADD+SYSTEM+VERSIONING -> AlterAction @mariadb
  | ADD+PERIOD+IF NOT EXISTS if_exists:"IF" kind:"ADD PERIOD" period:named_period
    -> AlterAction @mariadb
  | ADD+PERIOD &FOR kind:"ADD PERIOD" period:named_period -> AlterAction @mariadb
  | ADD added
  | DROP {
      PRIMARY KEY kind:"DROP PRIMARY KEY" name:"PRIMARY"
    | FOREIGN KEY kind:"DROP FOREIGN KEY" dropped_part
    | {KEY | INDEX} kind:"DROP KEY" dropped_part
    | CONSTRAINT kind:"DROP CONSTRAINT" dropped_part
    | CHECK kind:"DROP CHECK" dropped_part @mysql>=8
    | SYSTEM+VERSIONING kind:"DROP SYSTEM VERSIONING" @mariadb
    | PERIOD &{FOR IF} if_exists:[IF EXISTS] FOR kind:"DROP PERIOD" name:name @mariadb
    | [COLUMN] no_period kind:"DROP COLUMN" dropped_part [RESTRICT | CASCADE] } -> AlterAction
  | MODIFY [COLUMN] if_exists:[if_there] columns:column place kind:"MODIFY COLUMN" -> changed
  | CHANGE [COLUMN] if_exists:[if_there] name:name columns:column place kind:"CHANGE COLUMN"
    -> AlterAction
  | RENAME {
      {KEY | INDEX} kind:"RENAME KEY" dropped_part TO new_name:name
    | COLUMN kind:"RENAME COLUMN" dropped_part TO new_name:name @mysql>=8|mariadb>=10.5.2
    | [TO | AS | =] kind:"RENAME" table:object } -> AlterAction
  | ALTER {
      {KEY | INDEX} kind:"ALTER KEY" dropped_part words:visibility
    | CHECK kind:"ALTER CHECK" name:name words:{[NOT] ENFORCED} @mysql>=8
    | CONSTRAINT kind:"ALTER CONSTRAINT" name:name words:{[NOT] ENFORCED} @mysql>=8
    | [COLUMN] kind:"ALTER COLUMN" dropped_part {
          words:{DROP DEFAULT}
        | SET { DEFAULT words:"SET DEFAULT" default_at:^ default:default_value
              | words:{VISIBLE | INVISIBLE} @mysql>=8.0.23 } } } -> AlterAction
  | CONVERT TO kind:"CONVERT" option:converted [COLLATE collation:collation_name] -> AlterAction
  | kind:{ORDER BY} {expressions:column_reference [ASC | DESC]}, ... -> AlterAction
  | kind:{ENABLE KEYS | DISABLE KEYS} -> AlterAction
  | kind:FORCE -> AlterAction
  | kind:ALGORITHM [=] words:how -> AlterAction
  | kind:LOCK [=] words:lock_kind -> AlterAction
  | kind:"VALIDATION" words:{WITH | WITHOUT} VALIDATION -> AlterAction @mysql
added =
    item:added_element -> added
  | [COLUMN] no_period if_exists:[IF NOT EXISTS @mariadb] {
      ( elements:element, ... ) | elements:column place } -> added_columns
named_period = FOR name ( name , name ) -> Period
dropped_part = if_exists:[if_there] name:name
place = [position:FIRST | position:AFTER after:name]
visibility = {VISIBLE | INVISIBLE} @mysql>=8 | [NOT] IGNORED @mariadb>=10.6
converted = charset name:"CHARACTER SET" value:charset_name -> TableOption
"""
