"""DDL: tables, indexes, sequences, databases, views, programs, accounts."""

from __future__ import annotations

from dataclasses import dataclass, field

from binlane.statements.sql.tree.expressions import (
    DataType,
    Expression,
    Literal,
    Node,
    ObjectName,
    Query,
)

# Columns and keys -----------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Reference(Node):
    """REFERENCES, of a column or FOREIGN KEY.

    Attributes:
        table: Without a database it is that of the table that refers.
        columns: Empty if none are named.
        on_delete: `CASCADE`, `SET NULL`, `SET DEFAULT`, `RESTRICT`, `NO ACTION` or empty.
        on_update: Likewise.
    """

    table: ObjectName
    columns: tuple[str, ...]
    on_delete: str = ""
    on_update: str = ""


@dataclass(slots=True, eq=False)
class Check(Node):
    """CHECK, of a column or table."""

    condition: Expression
    name: str = ""
    condition_at: int = -1
    """Behind its opening parenthesis; `condition_end` is where the closing one stands."""
    condition_end: int = -1
    if_not_exists: bool = False
    is_unenforced: bool = False


@dataclass(slots=True, eq=False)
class Column(Node):
    """A column's definition.

    Attributes:
        name: As written.
        type: None where MariaDB's GENERATED of a period or a DEFAULT alone leaves it out.
        is_nullable: What NULL and NOT NULL say; None without either.
        default: DEFAULT, an expression; None without.
        on_update: ON UPDATE, an expression.
        generated: AS (…): its expression.
        storage: `STORED`, `PERSISTENT`, `VIRTUAL` or empty of a generated column; `ROW START` and
            `ROW END` of a system period.
        is_auto_increment: AUTO_INCREMENT or SERIAL.
        key: `PRIMARY`, `UNIQUE` or empty: what the column says itself.
        references: REFERENCES.
        checks: CHECK.
        comment: COMMENT.
        words: NULL, UNIQUE (also beside PRIMARY), INVISIBLE, COMPRESSED, `WITH SYSTEM VERSIONING`,
            `WITHOUT SYSTEM VERSIONING`, `REF_SYSTEM_ID`, `COLUMN_FORMAT …`, `STORAGE …`, SERIAL.
        default_at: Where what stands behind DEFAULT begins, a parenthesis included; -1 without.
        default_end: Where it ends.
        generated_at: Behind the parenthesis of a generated column's expression; -1 without.
        generated_end: Where the closing one stands.
    """

    name: str
    type: DataType | None
    is_nullable: bool | None = None
    default: Expression | None = None
    on_update: Expression | None = None
    generated: Expression | None = None
    storage: str = ""
    is_auto_increment: bool = False
    key: str = ""
    references: Reference | None = None
    checks: tuple[Check, ...] = ()
    comment: Literal | None = None
    words: frozenset[str] = frozenset()
    default_at: int = -1
    default_end: int = -1
    generated_at: int = -1
    generated_end: int = -1


@dataclass(slots=True, eq=False)
class KeyPart(Node):
    """A column or expression of a key.

    Attributes:
        column: Its name; empty for an expression.
        expression: Of a functional key.
        length: Of a prefix; None without.
        is_descending: DESC.
        is_period: WITHOUT OVERLAPS: a period, no column, of that name.
    """

    column: str
    expression: Expression | None = None
    length: int | None = None
    is_descending: bool = False
    is_period: bool = False


@dataclass(slots=True, eq=False)
class KeyDefinition(Node):
    """A key or foreign key of CREATE TABLE, ADD KEY, CREATE INDEX.

    Attributes:
        kind: `PRIMARY`, `UNIQUE`, `KEY`, `FULLTEXT`, `SPATIAL`, `VECTOR` or `FOREIGN`.
        name: The index's; empty without.
        constraint: Behind CONSTRAINT; empty without.
        parts: Its columns.
        references: Of FOREIGN.
        algorithm: Of USING, in capitals.
        parser: WITH PARSER.
        comment: COMMENT.
        words: INVISIBLE, IGNORED, CLUSTERING=YES …
        if_not_exists: IF NOT EXISTS.
    """

    kind: str
    name: str
    constraint: str
    parts: tuple[KeyPart, ...]
    references: Reference | None = None
    algorithm: str = ""
    parser: str = ""
    comment: Literal | None = None
    words: frozenset[str] = frozenset()
    if_not_exists: bool = False


@dataclass(slots=True, eq=False)
class Period(Node):
    """PERIOD FOR name (from, to)."""


@dataclass(slots=True, eq=False)
class TableOption(Node):
    """ENGINE = InnoDB and the like.

    Attributes:
        name: In capitals, one spelling for synonyms: `ENGINE` (TYPE), `CHARACTER SET` (CHARSET,
            with or without DEFAULT), `COLLATE`, `AUTO_INCREMENT`, `UNION`, `DATA DIRECTORY`,
            `WITH SYSTEM VERSIONING` …
        value: As it stands, without quotes; tables of UNION are in `tables`.
        tables: Of UNION.
    """

    name: str
    value: str = ""
    tables: tuple[ObjectName, ...] = ()


@dataclass(slots=True, eq=False)
class Partition(Node):
    """PARTITION or SUBPARTITION with its name.

    Attributes:
        name: As written.
        kind: `LESS THAN`, `IN`, `HISTORY`, `CURRENT`, `DEFAULT` or empty.
        values: Of VALUES LESS THAN and IN; without MAXVALUE.
        values_at: Where their parenthesis, or MAXVALUE, stands; -1 without.
        values_end: Behind it.
        options: ENGINE, COMMENT, DATA DIRECTORY …
        subpartitions: Its own.
    """

    name: str
    kind: str = ""
    values: tuple[Expression, ...] = ()
    values_at: int = -1
    values_end: int = -1
    options: tuple[TableOption, ...] = ()
    subpartitions: tuple[Partition, ...] = ()


@dataclass(slots=True, eq=False)
class Partitioning(Node):
    """PARTITION BY with its partitions; of ADD and REORGANIZE PARTITION those alone.

    Attributes:
        kind: `RANGE`, `LIST`, `HASH`, `KEY`, `SYSTEM_TIME`, `RANGE COLUMNS`, `LINEAR HASH`, …
        values: Its expressions, columns as names.
        count: Of PARTITIONS; None without.
        sub: SUBPARTITION BY.
        partitions: Those that it names.
        limits: Of SYSTEM_TIME: its interval and beginning.
    """

    kind: str
    values: tuple[Expression, ...] = ()
    count: int | None = None
    sub: Partitioning | None = None
    partitions: tuple[Partition, ...] = ()
    limits: tuple[Expression, ...] = ()


# Tables ---------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class CreateTable(Node):
    """CREATE TABLE … (…), … LIKE, … SELECT.

    Attributes:
        name: Of the table.
        is_temporary: TEMPORARY.
        is_external: EXTERNAL.
        is_or_replace: OR REPLACE.
        if_not_exists: IF NOT EXISTS.
        columns: As they stand.
        keys: Keys and foreign keys.
        checks: Of the table.
        periods: MariaDB's.
        options: Of the table.
        partitioning: PARTITION BY.
        like: Of LIKE.
        on_existing: `IGNORE` or `REPLACE` before the query; else empty.
        query: Of CREATE … SELECT.
        elements: Columns, keys, checks and periods in the order of the text.
        elements_at: Where their parenthesis opens; -1 without.
        elements_end: Behind its partner.
    """

    name: ObjectName
    is_temporary: bool = False
    is_external: bool = False
    is_or_replace: bool = False
    if_not_exists: bool = False
    elements: tuple[Column | KeyDefinition | Check | Period, ...] = ()
    options: tuple[TableOption, ...] = ()
    partitioning: Partitioning | None = None
    like: ObjectName | None = None
    on_existing: str = ""
    query: Query | None = None
    elements_at: int = -1
    elements_end: int = -1
    verb: str = "CREATE TABLE"


@dataclass(slots=True, eq=False)
class AlterAction(Node):
    """One action of ALTER TABLE.

    Attributes:
        kind: `ADD COLUMN`, `MODIFY COLUMN`, `CHANGE COLUMN`, `DROP COLUMN`, `RENAME COLUMN`,
            `ALTER COLUMN` (SET or DROP DEFAULT, VISIBLE), `ADD KEY`, `DROP KEY`, `DROP PRIMARY KEY`,
            `DROP FOREIGN KEY`, `DROP CONSTRAINT`, `DROP CHECK`, `ADD CHECK`, `RENAME KEY`,
            `ALTER KEY`, `ALTER CHECK`, `ALTER CONSTRAINT`, `RENAME`, `OPTION`, `CONVERT`, `ORDER BY`, `ENABLE KEYS`,
            `DISABLE KEYS`, `FORCE`, `ALGORITHM`, `LOCK`, `VALIDATION`, `DISCARD TABLESPACE`,
            `IMPORT TABLESPACE`, `PARTITION` (what is done to partitions, in `words`),
            `PARTITION BY`, `REMOVE PARTITIONING`, `ADD PERIOD`, `DROP PERIOD`,
            `ADD SYSTEM VERSIONING`, `DROP SYSTEM VERSIONING`.
        name: Of the column, key or constraint that is meant; as written.
        new_name: Of RENAME COLUMN and RENAME KEY.
        columns: Of ADD, MODIFY and CHANGE; ADD (a INT, b INT) is one action with several.
        position: `FIRST`, or `AFTER` with `after`.
        after: A column.
        key: Of ADD KEY.
        keys: Of ADD (…), which may hold keys and checks beside columns.
        checks: Likewise.
        check: Of ADD CHECK.
        period: Of ADD PERIOD.
        default: Of ALTER COLUMN … SET DEFAULT; None of DROP DEFAULT.
        default_at: As of a column.
        option: Of OPTION; of CONVERT its character set (`CHARACTER SET`) and `collation`.
        table: Of RENAME TO, EXCHANGE PARTITION … WITH TABLE.
        partitioning: Of PARTITION BY; of ADD and REORGANIZE PARTITION.
        words: More words, in capitals.
        if_exists: IF EXISTS or IF NOT EXISTS.
        expressions: Of ORDER BY and others.
        is_local: NO_WRITE_TO_BINLOG or LOCAL of what is done to partitions.
    """

    kind: str
    name: str = ""
    new_name: str = ""
    columns: tuple[Column, ...] = ()
    position: str = ""
    after: str = ""
    key: KeyDefinition | None = None
    keys: tuple[KeyDefinition, ...] = ()
    checks: tuple[Check, ...] = ()
    check: Check | None = None
    period: Period | None = None
    default: Expression | None = None
    default_at: int = -1
    option: TableOption | None = None
    collation: str = ""
    table: ObjectName | None = None
    partitioning: Partitioning | None = None
    words: tuple[str, ...] = ()
    if_exists: bool = False
    expressions: tuple[Expression, ...] = ()
    is_local: bool = False


@dataclass(slots=True, eq=False)
class AlterTable(Node):
    """ALTER TABLE; `modifiers`: ONLINE, IGNORE, IF EXISTS."""

    name: ObjectName
    actions: tuple[AlterAction, ...]
    modifiers: frozenset[str] = frozenset()
    verb: str = "ALTER TABLE"


@dataclass(slots=True, eq=False)
class CreateIndex(Node):
    """CREATE INDEX; `words`: ONLINE, OR REPLACE, ALGORITHM=…, LOCK=…."""

    table: ObjectName
    key: KeyDefinition
    words: frozenset[str] = frozenset()
    verb: str = "CREATE INDEX"


@dataclass(slots=True, eq=False)
class DropIndex(Node):
    """DROP INDEX; PRIMARY is the primary key."""

    table: ObjectName
    name: str
    if_exists: bool = False
    verb: str = "DROP INDEX"


@dataclass(slots=True, eq=False)
class DropTables(Node):
    """DROP of tables, views or sequences, TRUNCATE.

    Attributes:
        verb: `DROP TABLE`, `DROP VIEW`, `DROP SEQUENCE`, `TRUNCATE TABLE`.
        names: In the order of the text.
        is_temporary: TEMPORARY.
        if_exists: IF EXISTS.
        option: `CASCADE` or `RESTRICT` or empty.
    """

    verb: str
    names: tuple[ObjectName, ...]
    is_temporary: bool = False
    if_exists: bool = False
    option: str = ""


@dataclass(slots=True, eq=False)
class RenameTables(Node):
    """RENAME TABLE: pairs of the old and the new name."""

    pairs: tuple[tuple[ObjectName, ObjectName], ...]
    if_exists: bool = False
    verb: str = "RENAME TABLE"


@dataclass(slots=True, eq=False)
class Sequence(Node):
    """CREATE SEQUENCE and ALTER SEQUENCE.

    Attributes:
        verb: As told.
        settings: `START`, `INCREMENT`, `MINVALUE`, `MAXVALUE`, `CACHE`, `RESTART`: the number, None
            for NOMINVALUE, NOCACHE (0 for this) and a bare RESTART.
        options: As of a table.
    """

    verb: str
    name: ObjectName
    is_temporary: bool = False
    is_or_replace: bool = False
    if_exists: bool = False
    settings: dict[str, int | None] = field(default_factory=dict)
    options: tuple[TableOption, ...] = ()


# Databases, views, programs, accounts ----------------------------------------------------------


@dataclass(slots=True, eq=False)
class Database(Node):
    """CREATE, ALTER and DROP DATABASE; `name` is None for the default one.

    Attributes:
        if_exists: IF EXISTS, or IF NOT EXISTS of CREATE.
    """

    verb: str
    name: ObjectName | None
    is_or_replace: bool = False
    if_exists: bool = False
    options: tuple[TableOption, ...] = ()


@dataclass(slots=True, eq=False)
class Account(Node):
    """`user@host`, CURRENT_USER, a role; `host` is None where the text gives none."""

    user: str
    host: str | None = None
    is_current: bool = False


@dataclass(slots=True, eq=False)
class CreateView(Node):
    """CREATE VIEW and ALTER VIEW.

    Attributes:
        algorithm: `MERGE`, `TEMPTABLE`, `UNDEFINED` or empty.
        definer: None without.
        security: `DEFINER`, `INVOKER` or empty.
        columns: Empty if none are named.
        query: Its body.
        query_at: Where its body begins, a parenthesis around it too.
        kind: Of other kinds (`MATERIALIZED`, `JSON DUALITY`); else empty.
    """

    verb: str
    name: ObjectName
    query: Query
    is_or_replace: bool = False
    if_not_exists: bool = False
    algorithm: str = ""
    definer: Account | None = None
    security: str = ""
    columns: tuple[str, ...] = ()
    kind: str = ""
    query_at: int = -1


@dataclass(slots=True, eq=False)
class RoutineParameter(Node):
    """A parameter; `direction` is IN, OUT or INOUT."""

    name: str
    type: DataType
    direction: str = "IN"
    default: Expression | None = None


@dataclass(slots=True, eq=False)
class CreateRoutine(Node):
    """CREATE PROCEDURE and CREATE FUNCTION, stored or loadable.

    Attributes:
        verb: `CREATE PROCEDURE` or `CREATE FUNCTION`.
        is_aggregate: AGGREGATE.
        parameters: In order.
        parameters_at: Where their parenthesis opens; `parameters_end` behind its partner.
        returns: Of a function.
        soname: Of a loadable function.
        characteristics: Such as `DETERMINISTIC`, `NO SQL`, `READS SQL DATA`, `SQL SECURITY INVOKER`,
            `LANGUAGE SQL`, in the order of the text.
        comment: COMMENT.
        language: In which it is written, as it stands; empty for SQL.
        libraries: That its code uses.
        code: In another language.
        body: A program of `statements`; None of a loadable one and of other languages.
        body_at: Where it, or the code, begins; -1 without.
    """

    verb: str
    name: ObjectName
    is_or_replace: bool = False
    if_not_exists: bool = False
    is_aggregate: bool = False
    definer: Account | None = None
    parameters: tuple[RoutineParameter, ...] = ()
    parameters_at: int = -1
    parameters_end: int = -1
    returns: DataType | None = None
    soname: str = ""
    characteristics: tuple[str, ...] = ()
    comment: Literal | None = None
    language: str = ""
    libraries: tuple[UsedLibrary, ...] = ()
    code: Literal | None = None
    body: Node | None = None
    body_at: int = -1


@dataclass(slots=True, eq=False)
class UsedLibrary(Node):
    """A library of USING; `alias` is empty without one."""

    name: ObjectName
    alias: str = ""


@dataclass(slots=True, eq=False)
class CreateLibrary(Node):
    """CREATE LIBRARY.

    Attributes:
        language: As it stands.
        code: In that language.
    """

    verb: str
    name: ObjectName
    if_not_exists: bool = False
    comment: Literal | None = None
    language: str = ""
    code: Literal | None = None


@dataclass(slots=True, eq=False)
class CreateTrigger(Node):
    """CREATE TRIGGER.

    Attributes:
        time: `BEFORE` or `AFTER`.
        events: `INSERT`, `UPDATE`, `DELETE`; MariaDB takes several since 12.
        order: `FOLLOWS` or `PRECEDES` and the other trigger; None without.
        order_at: Where that stands; -1 without.
    """

    name: ObjectName
    table: ObjectName
    time: str
    events: tuple[str, ...]
    body: Node
    body_at: int
    is_or_replace: bool = False
    if_not_exists: bool = False
    definer: Account | None = None
    order: tuple[str, str] | None = None
    order_at: int = -1
    verb: str = "CREATE TRIGGER"


@dataclass(slots=True, eq=False)
class Event(Node):
    """CREATE EVENT and ALTER EVENT.

    Attributes:
        schedule: Expressions of AT, EVERY, STARTS and ENDS.
        new_name: Of ALTER EVENT … RENAME TO.
        body: Of DO; None without.
    """

    verb: str
    name: ObjectName
    is_or_replace: bool = False
    if_exists: bool = False
    definer: Account | None = None
    schedule: tuple[Expression, ...] = ()
    new_name: ObjectName | None = None
    comment: Literal | None = None
    body: Node | None = None
    body_at: int = -1


@dataclass(slots=True, eq=False)
class ObjectStatement(Node):
    """What is done to another object, or to one without a form of its own.

    ALTER PROCEDURE, DROP TRIGGER, CREATE PACKAGE, DROP EVENT, CREATE SERVER, ALTER TABLESPACE, …

    Attributes:
        verb: As told.
        name: Of the object; None without one.
        words: More of what it says.
        number: Of what has one instead of a name, a spatial reference system; else 0.
        libraries: That the code of an altered routine uses.
    """

    verb: str
    name: ObjectName | None = None
    is_or_replace: bool = False
    if_exists: bool = False
    definer: Account | None = None
    words: tuple[str, ...] = ()
    number: int = 0
    libraries: tuple[UsedLibrary, ...] = ()


@dataclass(slots=True, eq=False)
class Credential(Node):
    """How an account logs in: IDENTIFIED …, of several factors the first, and its old password.

    Attributes:
        plugin: Of WITH or VIA; empty without.
        secret: None without, and where it is random or a number in hex.
        is_hash: `secret` is what the server keeps, not a password.
        is_random: RANDOM PASSWORD.
        then: `RETAIN CURRENT PASSWORD`, `DISCARD OLD PASSWORD` or empty.
        is_identified: It says IDENTIFIED, and not of the old password alone.
    """

    plugin: str = ""
    secret: Literal | None = None
    is_hash: bool = False
    is_random: bool = False
    then: str = ""
    is_identified: bool = True


@dataclass(slots=True, eq=False)
class AccountClause(Node):
    """What holds for all accounts of a statement: `REQUIRE`, `WITH`, `PASSWORD EXPIRE` and others.

    Attributes:
        name: As told.
        parts: What follows: words in capitals and numbers, strings.
    """

    name: str
    parts: tuple[str | Literal, ...] = ()


@dataclass(slots=True, eq=False)
class Privilege(Node):
    """A privilege in capitals (`ALL` for all), and the columns that it is for."""

    name: str
    columns: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class AccountStatement(Node):
    """CREATE, ALTER, DROP, RENAME USER or ROLE, GRANT, REVOKE, SET PASSWORD, SET ROLE.

    Attributes:
        accounts: Those it is about, in the order of the text; pairs of RENAME side by side.
        credentials: Of each of them; empty for statements without.
        privileges: Of GRANT and REVOKE.
        object_kind: `TABLE`, `PROCEDURE`, `FUNCTION`, … of ON; empty without ON.
        on: What ON names: a table, `db.*` (name `*`), `*.*`; None without.
        options: `WITH GRANT OPTION`, `IF EXISTS`, `IF NOT EXISTS`, `OR REPLACE`, …; of roles
            `NONE`, `ALL`, `DEFAULT`.
        clauses: In the order of the text.
        roles: That are granted, set, or made default; the account of PROXY; of WITH ADMIN.
        grantor: Of GRANT … AS; None without.
        grantor_roles: `NONE`, `ALL`, `DEFAULT` or empty, and accounts: of its WITH ROLE.
    """

    verb: str
    accounts: tuple[Account, ...] = ()
    credentials: tuple[Credential | None, ...] = ()
    privileges: tuple[Privilege, ...] = ()
    object_kind: str = ""
    on: ObjectName | None = None
    options: frozenset[str] = frozenset()
    clauses: tuple[AccountClause, ...] = ()
    roles: tuple[Account, ...] = ()
    grantor: Account | None = None
    grantor_roles: tuple[str, tuple[Account, ...]] = ("", ())
