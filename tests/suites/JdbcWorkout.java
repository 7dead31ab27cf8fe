import com.mysql.cj.jdbc.JdbcStatement;
import com.mysql.cj.jdbc.MysqlXADataSource;
import com.mysql.cj.jdbc.MysqlXid;
import java.io.ByteArrayInputStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.util.*;
import javax.sql.XAConnection;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;

/**
 * What applications do with JDBC, one thing after the other, with each way of Connector/J to prepare
 * statements; a line tells what came of each. The driver's own tests are in no artifact. Arguments:
 * port, database.
 */
public class JdbcWorkout {
    interface Part {
        Object run(Connection connection) throws Exception;
    }

    static final Map<String, Part> PARTS = new LinkedHashMap<>();
    static String url;

    static Connection open(String options) throws SQLException {
        return DriverManager.getConnection(url + "?user=root&password=&connectionTimeZone=UTC&" + options);
    }

    static List<Object> rows(ResultSet result) throws SQLException {
        List<Object> rows = new ArrayList<>();
        int columns = result.getMetaData().getColumnCount();
        while (result.next()) {
            List<Object> row = new ArrayList<>();
            for (int i = 1; i <= columns; i++) row.add(result.getString(i));
            rows.add(row);
        }
        return rows;
    }

    static List<Object> ask(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return rows(statement.executeQuery(sql));
        }
    }

    static int change(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return statement.executeUpdate(sql);
        }
    }

    static {
        PARTS.put("generated keys", c -> {
            change(c, "CREATE TABLE item (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), price DECIMAL(12,2), at DATETIME(6), raw BLOB)");
            try (PreparedStatement s = c.prepareStatement("INSERT INTO item (name, price, at, raw) VALUES (?, ?, ?, ?)", Statement.RETURN_GENERATED_KEYS)) {
                List<Object> keys = new ArrayList<>();
                for (int i = 0; i < 4; i++) {
                    s.setString(1, "it's " + i + " ä€");
                    s.setBigDecimal(2, new BigDecimal("12345.67"));
                    s.setTimestamp(3, Timestamp.valueOf("2024-02-29 01:02:03.456789"));
                    s.setBytes(4, new byte[] {0, 1, (byte) 255, '\'', '\\'});
                    s.executeUpdate();
                    keys.add(rows(s.getGeneratedKeys()));
                }
                return List.of(keys, ask(c, "SELECT id, name, price, at, HEX(raw) FROM item ORDER BY id"));
            }
        });
        PARTS.put("batches", c -> {
            change(c, "CREATE TABLE batch (id INT PRIMARY KEY AUTO_INCREMENT, n INT UNIQUE, t VARCHAR(20))");
            try (PreparedStatement s = c.prepareStatement("INSERT INTO batch (n, t) VALUES (?, ?)", Statement.RETURN_GENERATED_KEYS)) {
                for (int i = 0; i < 10; i++) {
                    s.setInt(1, i);
                    s.setString(2, "t" + i);
                    s.addBatch();
                }
                return List.of(Arrays.toString(s.executeBatch()), rows(s.getGeneratedKeys()), ask(c, "SELECT * FROM batch ORDER BY id"));
            }
        });
        PARTS.put("batch of updates", c -> {
            try (Statement s = c.createStatement()) {
                s.addBatch("UPDATE batch SET t = 'x' WHERE n < 3");
                s.addBatch("DELETE FROM batch WHERE n = 9");
                s.addBatch("INSERT INTO batch (n) VALUES (20), (21)");
                return List.of(Arrays.toString(s.executeBatch()), ask(c, "SELECT n, t FROM batch ORDER BY n"));
            }
        });
        PARTS.put("batch that fails", c -> {
            try (PreparedStatement s = c.prepareStatement("INSERT INTO batch (n) VALUES (?)")) {
                for (int n : new int[] {30, 1, 31}) {
                    s.setInt(1, n);
                    s.addBatch();
                }
                try {
                    return Arrays.toString(s.executeBatch());
                } catch (BatchUpdateException e) {
                    return List.of(e.getErrorCode(), Arrays.toString(e.getUpdateCounts()), ask(c, "SELECT n FROM batch WHERE n > 25 ORDER BY n"));
                }
            }
        });
        PARTS.put("transactions", c -> {
            c.setAutoCommit(false);
            change(c, "UPDATE item SET name = 'gone' WHERE id = 1");
            c.rollback();
            change(c, "UPDATE item SET name = 'kept' WHERE id = 2");
            Savepoint savepoint = c.setSavepoint("one");
            change(c, "DELETE FROM item WHERE id = 3");
            c.rollback(savepoint);
            c.commit();
            c.setAutoCommit(true);
            return ask(c, "SELECT id, name FROM item ORDER BY id");
        });
        PARTS.put("isolation levels", c -> {
            List<Object> seen = new ArrayList<>();
            for (int level : new int[] {Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_SERIALIZABLE, Connection.TRANSACTION_REPEATABLE_READ}) {
                c.setTransactionIsolation(level);
                seen.add(c.getTransactionIsolation() == level);
            }
            return seen;
        });
        PARTS.put("writes with READ COMMITTED", c -> {
            c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            try {
                return change(c, "UPDATE item SET price = price + 1");
            } finally {
                c.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            }
        });
        PARTS.put("read only", c -> {
            c.setReadOnly(true);
            try {
                return change(c, "UPDATE item SET price = 0");
            } catch (SQLException e) {
                return List.of(e.getErrorCode(), e.getSQLState());
            } finally {
                c.setReadOnly(false);
            }
        });
        PARTS.put("callable statements", c -> {
            change(c, "CREATE PROCEDURE work(IN a INT, OUT b INT, INOUT d VARCHAR(20)) BEGIN SET b = a * 2; SET d = CONCAT(d, '!'); SELECT a; INSERT INTO batch (n) VALUES (a); END");
            change(c, "CREATE FUNCTION twice(a INT) RETURNS INT DETERMINISTIC NO SQL RETURN a * 2");
            List<Object> told = new ArrayList<>();
            try (CallableStatement s = c.prepareCall("{call work(?, ?, ?)}")) {
                s.setInt(1, 100);
                s.registerOutParameter(2, Types.INTEGER);
                s.setString(3, "hey");
                s.registerOutParameter(3, Types.VARCHAR);
                told.add(s.execute());
                told.add(rows(s.getResultSet()));
                told.add(s.getMoreResults());
                told.add(s.getInt(2));
                told.add(s.getString(3));
            }
            try (CallableStatement s = c.prepareCall("{? = call twice(?)}")) {
                s.registerOutParameter(1, Types.INTEGER);
                s.setInt(2, 21);
                s.execute();
                told.add(s.getInt(1));
            }
            return told;
        });
        PARTS.put("metadata", c -> {
            DatabaseMetaData data = c.getMetaData();
            List<Object> told = new ArrayList<>();
            told.add(data.getDatabaseProductName());
            told.add(data.getDatabaseProductVersion());
            try (ResultSet r = data.getTables(c.getCatalog(), null, "%", new String[] {"TABLE"})) {
                while (r.next()) told.add(r.getString("TABLE_NAME"));
            }
            try (ResultSet r = data.getColumns(c.getCatalog(), null, "item", "%")) {
                while (r.next()) told.add(r.getString("COLUMN_NAME") + " " + r.getString("TYPE_NAME") + " " + r.getInt("COLUMN_SIZE"));
            }
            told.add(rows(data.getPrimaryKeys(c.getCatalog(), null, "item")));
            told.add(rows(data.getIndexInfo(c.getCatalog(), null, "batch", false, false)).size());
            told.add(rows(data.getProcedures(c.getCatalog(), null, "%")).size());
            return told;
        });
        PARTS.put("row by row", c -> {
            try (Statement s = c.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY)) {
                s.setFetchSize(Integer.MIN_VALUE);
                return rows(s.executeQuery("SELECT a.n * 1000 + b.n FROM batch a, batch b ORDER BY 1"));
            }
        });
        PARTS.put("cursors", c -> {
            try (Connection own = open("useCursorFetch=true&defaultFetchSize=3"); PreparedStatement s = own.prepareStatement("SELECT n FROM batch WHERE n >= ? ORDER BY n")) {
                s.setInt(1, 0);
                return rows(s.executeQuery());
            }
        });
        PARTS.put("a write while a cursor is open", c -> {
            try (Connection own = open("useCursorFetch=true&defaultFetchSize=2"); PreparedStatement s = own.prepareStatement("SELECT n FROM batch ORDER BY n")) {
                List<Object> seen = new ArrayList<>();
                try (ResultSet r = s.executeQuery()) {
                    while (r.next()) {
                        seen.add(r.getInt(1));
                        if (seen.size() == 3) seen.add(change(own, "UPDATE item SET name = 'while' WHERE id = 4"));
                    }
                }
                return seen;
            }
        });
        PARTS.put("updatable results", c -> {
            try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_SENSITIVE, ResultSet.CONCUR_UPDATABLE); ResultSet r = s.executeQuery("SELECT id, n, t FROM batch WHERE n < 3 ORDER BY id")) {
                r.next();
                r.updateString("t", "updated");
                r.updateRow();
                r.moveToInsertRow();
                r.updateInt("n", 500);
                r.updateString("t", "inserted");
                r.insertRow();
                r.last();
            }
            return ask(c, "SELECT n, t FROM batch WHERE t LIKE '%ted' ORDER BY n");
        });
        PARTS.put("limits as parameters", c -> {
            List<Object> told = new ArrayList<>();
            try (PreparedStatement s = c.prepareStatement("SELECT n FROM batch ORDER BY n LIMIT ? OFFSET ?")) {
                s.setInt(1, 2);
                s.setInt(2, 1);
                told.add(rows(s.executeQuery()));
            }
            try (PreparedStatement s = c.prepareStatement("DELETE FROM batch ORDER BY n DESC LIMIT ?")) {
                s.setLong(1, 1);
                told.add(s.executeUpdate());
            }
            return told;
        });
        PARTS.put("types", c -> {
            change(c, "CREATE TABLE typed (id INT PRIMARY KEY AUTO_INCREMENT, b BIT(1), i BIGINT UNSIGNED, d DOUBLE, f FLOAT, da DATE, ti TIME(3), ts TIMESTAMP(6) NULL, y YEAR, e ENUM('a','b'), s SET('x','y'), t TEXT, j JSON)");
            try (PreparedStatement s = c.prepareStatement("INSERT INTO typed (b, i, d, f, da, ti, ts, y, e, s, t, j) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
                s.setBoolean(1, true);
                s.setObject(2, new java.math.BigInteger("18446744073709551615"));
                s.setDouble(3, 1.0 / 3);
                s.setFloat(4, 1.5f);
                s.setDate(5, java.sql.Date.valueOf("2024-02-29"));
                s.setTime(6, Time.valueOf("23:59:58"));
                s.setTimestamp(7, Timestamp.valueOf("2024-02-29 12:00:00.000001"));
                s.setInt(8, 2024);
                s.setString(9, "b");
                s.setString(10, "x,y");
                s.setCharacterStream(11, new java.io.StringReader("a long text"));
                s.setString(12, "{\"a\": 1}");
                s.executeUpdate();
                for (int i = 1; i <= 12; i++) s.setNull(i, Types.NULL);
                s.executeUpdate();
            }
            return ask(c, "SELECT id, b + 0, i, d, f, da, ti, ts, y, e, s, t, j FROM typed ORDER BY id");
        });
        PARTS.put("java.time", c -> {
            change(c, "CREATE TABLE moments (id INT PRIMARY KEY AUTO_INCREMENT, at DATETIME(6), day DATE, span TIME(6))");
            try (PreparedStatement s = c.prepareStatement("INSERT INTO moments (at, day, span) VALUES (?, ?, ?)")) {
                s.setObject(1, java.time.LocalDateTime.of(2024, 2, 29, 1, 2, 3, 456789000));
                s.setObject(2, java.time.LocalDate.of(2024, 2, 29));
                s.setObject(3, java.time.Duration.ofSeconds(-3661));
                s.executeUpdate();
            }
            return ask(c, "SELECT * FROM moments");
        });
        PARTS.put("errors", c -> {
            List<Object> told = new ArrayList<>();
            for (String sql : List.of("SELEC 1", "SELECT * FROM nothing", "INSERT INTO batch (n) VALUES (1)", "SELECT nothing()", "UPDATE item SET nothing = 1")) {
                try (PreparedStatement s = c.prepareStatement(sql)) {
                    s.execute();
                    told.add("no error");
                } catch (SQLException e) {
                    told.add(List.of(e.getErrorCode(), e.getSQLState(), e.getMessage()));
                }
            }
            return told;
        });
        PARTS.put("warnings", c -> {
            change(c, "SET sql_mode = ''");
            try (Statement s = c.createStatement()) {
                s.executeUpdate("INSERT INTO batch (n, t) VALUES (600, 'a text that is much too long for it')");
                List<Object> told = new ArrayList<>();
                for (SQLWarning w = s.getWarnings(); w != null; w = w.getNextWarning()) told.add(w.getErrorCode() + " " + w.getMessage());
                return told;
            }
        });
        PARTS.put("several statements", c -> {
            try (Connection own = open("allowMultiQueries=true"); Statement s = own.createStatement()) {
                List<Object> told = new ArrayList<>();
                boolean isRows = s.execute("SELECT 1; UPDATE item SET price = 1 WHERE id = 1; SELECT price FROM item WHERE id = 1; DELETE FROM item WHERE id = 99");
                while (true) {
                    if (isRows) told.add(rows(s.getResultSet()));
                    else if (s.getUpdateCount() < 0) return told;
                    else told.add(s.getUpdateCount());
                    isRows = s.getMoreResults();
                }
            }
        });
        PARTS.put("a local file", c -> {
            try (Connection own = open("allowLoadLocalInfile=true"); Statement s = own.createStatement()) {
                s.unwrap(JdbcStatement.class).setLocalInfileInputStream(new ByteArrayInputStream("701\tone\n702\ttwo\n".getBytes(StandardCharsets.UTF_8)));
                return List.of(s.executeUpdate("LOAD DATA LOCAL INFILE 'any' INTO TABLE batch (n, t)"), ask(own, "SELECT n, t FROM batch WHERE n > 700 ORDER BY n"));
            }
        });
        PARTS.put("XA", c -> {
            MysqlXADataSource source = new MysqlXADataSource();
            source.setUrl(url);
            source.setUser("root");
            XAConnection xa = source.getXAConnection();
            XAResource resource = xa.getXAResource();
            List<Object> told = new ArrayList<>();
            for (int n = 800; n < 802; n++) {
                Xid xid = new MysqlXid(("global " + n).getBytes(), "branch".getBytes(), 7);
                resource.start(xid, XAResource.TMNOFLAGS);
                told.add(change(xa.getConnection(), "INSERT INTO batch (n) VALUES (" + n + ")"));
                resource.end(xid, XAResource.TMSUCCESS);
                told.add(resource.prepare(xid));
                told.add(resource.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN).length);
                if (n == 800) resource.commit(xid, false);
                else resource.rollback(xid);
            }
            xa.close();
            told.add(ask(c, "SELECT n FROM batch WHERE n >= 800"));
            return told;
        });
        PARTS.put("temporary tables", c -> {
            change(c, "CREATE TEMPORARY TABLE scratch (n INT)");
            change(c, "INSERT INTO scratch VALUES (1), (2), (3)");
            change(c, "INSERT INTO batch (n) SELECT n + 900 FROM scratch");
            change(c, "DROP TEMPORARY TABLE scratch");
            return ask(c, "SELECT n FROM batch WHERE n > 900 ORDER BY n");
        });
        PARTS.put("reset", c -> {
            try (Connection own = open("")) {
                change(own, "SET @a = 1");
                own.unwrap(com.mysql.cj.jdbc.JdbcConnection.class).resetServerState();
                return List.of(ask(own, "SELECT @a"), own.isValid(1), own.getCatalog());
            }
        });
        PARTS.put("compression", c -> {
            try (Connection own = open("useCompression=true"); PreparedStatement s = own.prepareStatement("SELECT LENGTH(?), REPEAT('x', 100000) = ?")) {
                s.setString(1, "y".repeat(200000));
                s.setString(2, "x".repeat(100000));
                return rows(s.executeQuery());
            }
        });
        PARTS.put("character sets", c -> {
            List<Object> told = new ArrayList<>();
            for (String encoding : List.of("UTF-8", "ISO-8859-1", "Shift_JIS")) {
                try (Connection own = open("characterEncoding=" + encoding); PreparedStatement s = own.prepareStatement("SELECT HEX(?), @@character_set_client")) {
                    s.setString(1, "a" + (encoding.startsWith("S") ? "表" : "ä"));
                    told.add(rows(s.executeQuery()));
                }
            }
            return told;
        });
    }

    public static void main(String[] arguments) throws Exception {
        url = "jdbc:mysql://127.0.0.1:" + arguments[0] + "/" + arguments[1];
        Map<String, String> ways = new LinkedHashMap<>();
        ways.put("client", "");
        ways.put("server", "useServerPrepStmts=true&cachePrepStmts=true");
        ways.put("rewritten", "rewriteBatchedStatements=true");
        for (Map.Entry<String, String> way : ways.entrySet()) {
            try (Connection connection = open(way.getValue())) {
                change(connection, "DROP DATABASE " + arguments[1]);
                change(connection, "CREATE DATABASE " + arguments[1]);
                connection.setCatalog(arguments[1]);
                for (Map.Entry<String, Part> part : PARTS.entrySet()) {
                    Object outcome;
                    try {
                        outcome = part.getValue().run(connection);
                    } catch (Exception e) {
                        int code = e instanceof SQLException s ? s.getErrorCode() : 0;
                        outcome = "error " + code + ": " + e.getMessage();
                        connection.setAutoCommit(true);
                    }
                    System.out.println(">> " + part.getKey() + ", " + way.getKey() + ": " + String.valueOf(outcome).replace("\n", " "));
                }
            }
        }
    }
}
