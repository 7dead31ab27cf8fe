"""DDL: tables, indexes, sequences, databases, views, programs, accounts."""

from __future__ import annotations

from dataclasses import dataclass, field

from binlane.statements.sql.tree.account_statements import NamedAccount
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
    """A REFERENCES clause, of a column or FOREIGN KEY.

    Attributes:
        table: Table referred to; without a database it lies in that of the referring table.
        columns: Columns referred to; empty if none are named.
        on_delete: `CASCADE`, `SET NULL`, `SET DEFAULT`, `RESTRICT`, `NO ACTION` or empty.
        on_update: Action of ON UPDATE, with the same values as `on_delete`.
    """

    table: ObjectName
    columns: tuple[str, ...]
    on_delete: str = ""
    on_update: str = ""


@dataclass(slots=True, eq=False)
class CheckDefinition(Node):
    """CHECK, of a column or table."""

    condition: Expression
    name: str = ""
    condition_at: int = -1
    """Behind its opening parenthesis; `condition_end` is where the closing one stands."""
    condition_end: int = -1
    if_not_exists: bool = False
    is_unenforced: bool = False


@dataclass(slots=True, eq=False)
class DefinedColumn(Node):
    """A column's definition.

    Attributes:
        name: Name as the text writes it.
        type: Data type; None where MariaDB's GENERATED of a period or a DEFAULT alone leaves it
            out.
        is_nullable: True for NULL, False for NOT NULL; None without either.
        default: Expression behind DEFAULT; None without DEFAULT.
        on_update: Expression behind ON UPDATE, else None.
        generated: Expression in the parentheses of AS (…).
        storage: `STORED`, `PERSISTENT`, `VIRTUAL` or empty for a generated column; `ROW START` and
            `ROW END` for a system period.
        is_auto_increment: True with AUTO_INCREMENT or with SERIAL.
        key: `PRIMARY`, `UNIQUE` or empty, as the column's own words give it.
        words: NULL, UNIQUE (also beside PRIMARY), INVISIBLE, COMPRESSED, `WITH SYSTEM VERSIONING`,
            `WITHOUT SYSTEM VERSIONING`, `REF_SYSTEM_ID`, `COLUMN_FORMAT …`, `STORAGE …`, SERIAL.
        default_at: Place where the text behind DEFAULT begins, a parenthesis included; -1 without
            DEFAULT.
        default_end: Place where the text behind DEFAULT ends.
        generated_at: Place behind the opening parenthesis of a generated column's expression; -1
            without one.
        generated_end: Place of the closing parenthesis of that expression.
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
    checks: tuple[CheckDefinition, ...] = ()
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
        column: Name of the column; empty for an expression.
        expression: Expression of a functional key part.
        length: Length of a column prefix; None without.
        is_period: True for WITHOUT OVERLAPS: `column` then names a period, not a column.
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
        name: Name of the index; empty without one.
        constraint: Name behind CONSTRAINT; empty without one.
        parts: Columns and expressions of the key.
        references: REFERENCES clause of a FOREIGN key.
        algorithm: Index algorithm behind USING, in capitals.
        parser: Name behind WITH PARSER, else empty.
        words: Further words such as INVISIBLE, IGNORED, CLUSTERING=YES.
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
        name: Name in capitals, one spelling for synonyms: `ENGINE` (TYPE), `CHARACTER SET`
            (CHARSET, with or without DEFAULT), `COLLATE`, `AUTO_INCREMENT`, `UNION`,
            `DATA DIRECTORY`, `WITH SYSTEM VERSIONING` …
        value: Value as it stands, without quotes; the tables of UNION are in `tables` instead.
        tables: Tables of the option UNION.
    """

    name: str
    value: str = ""
    tables: tuple[ObjectName, ...] = ()


@dataclass(slots=True, eq=False)
class Partition(Node):
    """PARTITION or SUBPARTITION with its name.

    Attributes:
        name: Name as the text writes it.
        kind: `LESS THAN`, `IN`, `HISTORY`, `CURRENT`, `DEFAULT` or empty.
        values: Expressions of VALUES LESS THAN and IN; without MAXVALUE.
        values_at: Place of their parenthesis, or of MAXVALUE; -1 without.
        values_end: Place behind their closing parenthesis, or behind MAXVALUE.
        options: Options such as ENGINE, COMMENT, DATA DIRECTORY.
        subpartitions: Subpartitions defined inside this partition.
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
    """PARTITION BY with its partitions; ADD and REORGANIZE PARTITION have partitions alone.

    Attributes:
        kind: `RANGE`, `LIST`, `HASH`, `KEY`, `SYSTEM_TIME`, `RANGE COLUMNS`, `LINEAR HASH`, …
        values: Expressions of the partitioning, columns as names.
        count: Number behind PARTITIONS; None without.
        sub: Partitioning of the SUBPARTITION BY clause.
        partitions: Partitions that the clause names.
        limits: Interval and beginning of SYSTEM_TIME partitioning.
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
        keys: Keys and foreign keys of the table.
        checks: CHECK constraints of the table, not of columns.
        periods: Periods (PERIOD FOR), MariaDB only.
        like: Table that LIKE names, else None.
        on_existing: `IGNORE` or `REPLACE` before the query; else empty.
        query: Query of CREATE TABLE … SELECT.
        elements: Columns, keys, checks and periods in the order of the text.
        elements_at: Place where the parenthesis of the elements opens; -1 without.
        elements_end: Place behind the closing parenthesis.
    """

    name: ObjectName
    is_temporary: bool = False
    is_external: bool = False
    is_or_replace: bool = False
    if_not_exists: bool = False
    elements: tuple[DefinedColumn | KeyDefinition | CheckDefinition | Period, ...] = ()
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
            `ALTER COLUMN` (SET or DROP DEFAULT, VISIBLE), `ADD KEY`, `DROP KEY`,
            `DROP PRIMARY KEY`, `DROP FOREIGN KEY`, `DROP CONSTRAINT`, `DROP CHECK`, `ADD CHECK`,
            `RENAME KEY`, `ALTER KEY`, `ALTER CHECK`, `ALTER CONSTRAINT`, `RENAME`, `OPTION`, `CONVERT`,
            `ORDER BY`, `ENABLE KEYS`, `DISABLE KEYS`, `FORCE`, `ALGORITHM`, `LOCK`, `VALIDATION`,
            `DISCARD TABLESPACE`, `IMPORT TABLESPACE`, `PARTITION` (what is done to partitions, in
            `words`), `PARTITION BY`, `REMOVE PARTITIONING`, `ADD PERIOD`, `DROP PERIOD`,
            `ADD SYSTEM VERSIONING`, `DROP SYSTEM VERSIONING`.
        name: Name of the column, key or constraint that is meant; as written.
        new_name: New name in RENAME COLUMN and RENAME KEY.
        columns: Columns of ADD, MODIFY and CHANGE; ADD (a INT, b INT) is one action with several.
        position: `FIRST`, or `AFTER` with `after`.
        after: Column that stands behind AFTER.
        key: Key of the action ADD KEY.
        keys: Keys of ADD (…), which may hold keys and checks beside columns.
        checks: Checks of ADD (…), beside its columns.
        check: Check of the action ADD CHECK.
        period: Period of the action ADD PERIOD.
        default: Expression of ALTER COLUMN … SET DEFAULT; None for DROP DEFAULT.
        default_at: Place of the default, as in `Column.default_at`.
        option: Option of OPTION; for CONVERT the character set (`CHARACTER SET`), beside
            `collation`.
        table: New name of RENAME TO, or the table of EXCHANGE PARTITION … WITH TABLE.
        partitioning: Partitioning of PARTITION BY, of ADD and of REORGANIZE PARTITION.
        words: Further words of the action, in capitals.
        if_exists: True with IF EXISTS or IF NOT EXISTS.
        expressions: Expressions of ORDER BY and other actions.
        is_local: True if partitions are changed with NO_WRITE_TO_BINLOG or LOCAL.
    """

    kind: str
    name: str = ""
    new_name: str = ""
    columns: tuple[DefinedColumn, ...] = ()
    position: str = ""
    after: str = ""
    key: KeyDefinition | None = None
    keys: tuple[KeyDefinition, ...] = ()
    checks: tuple[CheckDefinition, ...] = ()
    check: CheckDefinition | None = None
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
        names: Names in the order of the text.
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
        verb: First words in capitals: `CREATE SEQUENCE` or `ALTER SEQUENCE`.
        settings: `START`, `INCREMENT`, `MINVALUE`, `MAXVALUE`, `CACHE`, `RESTART`: the number, None
            for NOMINVALUE, NOCACHE (0 for this) and a bare RESTART.
        options: Options like those of tables.
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
class CreateView(Node):
    """CREATE VIEW and ALTER VIEW.

    Attributes:
        algorithm: `MERGE`, `TEMPTABLE`, `UNDEFINED` or empty.
        definer: Account of the DEFINER clause; None without.
        security: SQL SECURITY: `DEFINER`, `INVOKER` or empty.
        columns: Columns of the view; empty if none are named.
        query: Query that the view stands for.
        query_at: Place where the query begins, a parenthesis around it included.
        kind: Kind of other views (`MATERIALIZED`, `JSON DUALITY`); else empty.
    """

    verb: str
    name: ObjectName
    query: Query
    is_or_replace: bool = False
    if_not_exists: bool = False
    algorithm: str = ""
    definer: NamedAccount | None = None
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
        parameters_at: Place where the parameters' parenthesis opens; `parameters_end` is behind its
            partner.
        returns: Type that a function returns.
        soname: Library file of a loadable function.
        characteristics: Words such as `DETERMINISTIC`, `NO SQL`, `READS SQL DATA`,
            `SQL SECURITY INVOKER`, `LANGUAGE SQL`, in the order of the text.
        language: Language of the body, as it stands; empty for SQL.
        libraries: Libraries that the routine's code uses.
        code: Code of a routine in another language than SQL.
        body: Program of `statements`; None for a loadable routine and for other languages.
        body_at: Place where the body, or the code, begins; -1 without.
    """

    verb: str
    name: ObjectName
    is_or_replace: bool = False
    if_not_exists: bool = False
    is_aggregate: bool = False
    definer: NamedAccount | None = None
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
        language: Language of the code, as it stands.
        code: Code of the library as a string literal.
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
        time: `BEFORE` or `AFTER` the row's change.
        events: Some of `INSERT`, `UPDATE`, `DELETE`; MariaDB takes several since 12.
        order: `FOLLOWS` or `PRECEDES` and the other trigger's name; None without.
        order_at: Place of the order clause; -1 without.
    """

    name: ObjectName
    table: ObjectName
    time: str
    events: tuple[str, ...]
    body: Node
    body_at: int
    is_or_replace: bool = False
    if_not_exists: bool = False
    definer: NamedAccount | None = None
    order: tuple[str, str] | None = None
    order_at: int = -1
    verb: str = "CREATE TRIGGER"


@dataclass(slots=True, eq=False)
class CreateEvent(Node):
    """CREATE EVENT and ALTER EVENT.

    Attributes:
        schedule: Expressions of AT, EVERY, STARTS and ENDS, in the order of the text.
        new_name: Name of ALTER EVENT … RENAME TO.
        body: Statement behind DO; None without.
    """

    verb: str
    name: ObjectName
    is_or_replace: bool = False
    if_exists: bool = False
    definer: NamedAccount | None = None
    schedule: tuple[Expression, ...] = ()
    new_name: ObjectName | None = None
    comment: Literal | None = None
    body: Node | None = None
    body_at: int = -1


@dataclass(slots=True, eq=False)
class ObjectStatement(Node):
    """Statement on another object, or on one without a form of its own.

    Examples are ALTER PROCEDURE, DROP TRIGGER, CREATE PACKAGE, DROP EVENT, CREATE SERVER and
    ALTER TABLESPACE.

    Attributes:
        verb: First words in capitals, as many as name the command.
        name: Name of the object; None without one.
        words: Further words of the statement that matter.
        number: Id of a spatial reference system, which has one instead of a name; else 0.
        libraries: Libraries that the code of an altered routine uses.
    """

    verb: str
    name: ObjectName | None = None
    is_or_replace: bool = False
    if_exists: bool = False
    definer: NamedAccount | None = None
    words: tuple[str, ...] = ()
    number: int = 0
    libraries: tuple[UsedLibrary, ...] = ()
