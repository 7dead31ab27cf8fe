// What mysql2's documentation shows, one thing after the other; a line of JSON tells what came of each.
// The package brings no tests. Arguments: port, database.
'use strict';

const mysql = require('mysql2');
const promises = require('mysql2/promise');

const config = {
  host: '127.0.0.1',
  port: Number(process.argv[2]),
  user: 'root',
  database: process.argv[3],
};

const parts = {
  async query(connection) {
    await connection.query('CREATE TABLE person (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), born DATE, worth DECIMAL(20,4), big BIGINT, data JSON, raw BLOB, seen DATETIME(6))');
    const [made] = await connection.query('INSERT INTO person SET ?', { name: "O'Hara", worth: '12.5000' });
    const [rows, fields] = await connection.query('SELECT id, name, worth FROM person WHERE name = ?', ["O'Hara"]);
    return [made, rows, fields.map((field) => [field.name, field.columnType, field.flags])];
  },
  async execute(connection) {
    const insert = 'INSERT INTO person (name, born, worth, big, data, raw, seen) VALUES (?, ?, ?, ?, ?, ?, ?)';
    const out = [];
    for (let i = 0; i < 5; i++) {
      const [made] = await connection.execute(insert, [
        `name ${i}`, '2001-02-03', '9999999999.1234', '9007199254740993', JSON.stringify({ i }),
        Buffer.from([0, 1, 255, i]), '2020-01-02 03:04:05.123456',
      ]);
      out.push([made.insertId, made.affectedRows, made.warningStatus]);
    }
    const [rows] = await connection.execute('SELECT * FROM person WHERE id > ? ORDER BY id', [1]);
    return [out, rows];
  },
  async values_of_each_type(connection) {
    await connection.query('CREATE TABLE typed (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(100))');
    const out = [];
    for (const value of [1, 1.5, -3, 1e20, true, false, null, 'text', '', 'ä€😀', BigInt('12345678901234567890'), { a: [1, 2] }]) {
      const [made] = await connection.execute('INSERT INTO typed (v) VALUES (?)', [value]);
      out.push(made.insertId);
    }
    const [rows] = await connection.query('SELECT v FROM typed ORDER BY id');
    return [out, rows];
  },
  async dates(connection) {
    await connection.query('CREATE TABLE moments (id INT PRIMARY KEY, at DATETIME(3), stamp TIMESTAMP(3) NULL, day DATE, span TIME)');
    const moment = new Date(Date.UTC(2024, 1, 29, 12, 30, 15, 250));
    await connection.execute('INSERT INTO moments VALUES (?, ?, ?, ?, ?)', [1, moment, moment, moment, '-12:34:56']);
    const [rows] = await connection.query({ sql: 'SELECT * FROM moments', dateStrings: true });
    return rows;
  },
  async limit_of_prepared_statement(connection) {
    const [few] = await connection.execute('SELECT id FROM person ORDER BY id LIMIT ?', ['2']);
    let told;
    try {
      [told] = await connection.execute('SELECT id FROM person ORDER BY id LIMIT ? OFFSET ?', [2, 1]);
    } catch (error) {
      told = error.errno;
    }
    return [few, told];
  },
  async limited_writes(connection) {
    await connection.query('CREATE TABLE limited (id INT PRIMARY KEY, done INT DEFAULT 0)');
    await connection.query('INSERT INTO limited (id) VALUES ?', [[[1], [2], [3], [4], [5]]]);
    const out = [];
    for (const sql of ['UPDATE limited SET done = 1 ORDER BY id LIMIT ?', 'DELETE FROM limited ORDER BY id DESC LIMIT ?']) {
      for (const value of [2, '2']) {
        try {
          const [made] = await connection.execute(sql, [value]);
          out.push(made.affectedRows);
        } catch (error) {
          out.push(error.errno);
        }
      }
    }
    const [rows] = await connection.query('SELECT * FROM limited ORDER BY id');
    return [out, rows];
  },
  async transactions(connection) {
    await connection.query('CREATE TABLE queue (id INT PRIMARY KEY, done INT DEFAULT 0)');
    await connection.query('INSERT INTO queue (id) VALUES (1), (2), (3)');
    await connection.beginTransaction();
    await connection.execute('UPDATE person SET name = ? WHERE id = ?', ['changed', 2]);
    await connection.rollback();
    await connection.beginTransaction();
    await connection.execute('UPDATE person SET worth = worth + ? WHERE id = ?', [1, 3]);
    await connection.query('SAVEPOINT s');
    await connection.query('DELETE FROM person WHERE id = 4');
    await connection.query('ROLLBACK TO s');
    await connection.commit();
    const [rows] = await connection.query('SELECT id, name, worth FROM person ORDER BY id');
    return rows;
  },
  async named_placeholders(connection) {
    connection.config.namedPlaceholders = true;
    const [rows] = await connection.execute('SELECT :a + :b AS sum, :a AS again', { a: 1, b: 2 });
    connection.config.namedPlaceholders = false;
    return rows;
  },
  async rows_as_arrays(connection) {
    const [rows] = await connection.query({ sql: 'SELECT id, id + 1, name FROM person ORDER BY id', rowsAsArray: true });
    return rows;
  },
  async big_numbers(connection) {
    const [rows] = await connection.query({ sql: 'SELECT big FROM person ORDER BY id', supportBigNumbers: true, bigNumberStrings: true });
    return rows;
  },
  async nested_tables(connection) {
    const [rows] = await connection.query({ sql: 'SELECT * FROM queue a JOIN queue b ON a.id = b.id ORDER BY 1', nestTables: true });
    return rows;
  },
  async errors(connection) {
    const out = [];
    for (const sql of ['SELEC 1', 'SELECT * FROM nothing', 'INSERT INTO queue (id) VALUES (1)', 'SELECT nothing()', 'INSERT INTO queue VALUES (1, 2, 3)']) {
      for (const way of ['query', 'execute']) {
        try {
          await connection[way](sql);
          out.push('no error');
        } catch (error) {
          out.push([error.code, error.errno, error.sqlState, error.sqlMessage]);
        }
      }
    }
    return out;
  },
  async several_statements() {
    const connection = await promises.createConnection({ ...config, multipleStatements: true });
    const [results] = await connection.query('SELECT 1 AS a; INSERT INTO queue (id) VALUES (101), (102); SELECT COUNT(*) AS n FROM queue; DELETE FROM queue WHERE id > 100');
    await connection.end();
    return results;
  },
  async procedures(connection) {
    await connection.query('CREATE PROCEDURE two_results(IN p INT) BEGIN SELECT p AS p; SELECT id FROM queue ORDER BY id; UPDATE queue SET done = p; END');
    const [called] = await connection.query('CALL two_results(?)', [7]);
    const [executed] = await connection.execute('CALL two_results(?)', [8]);
    return [called, executed];
  },
  async prepared_by_hand(connection) {
    const statement = await connection.prepare('SELECT ? + id AS sum FROM queue ORDER BY id');
    const out = [];
    for (const value of [1, 2, 3]) out.push((await statement.execute([value]))[0]);
    await statement.close();
    return out;
  },
  streaming() {
    return new Promise((resolve, reject) => {
      const connection = mysql.createConnection(config);
      const seen = [];
      connection
        .query('SELECT a.id * 100 + b.id AS n FROM person a, person b ORDER BY 1')
        .stream({ highWaterMark: 2 })
        .on('data', (row) => seen.push(row.n))
        .on('error', reject)
        .on('end', () => connection.end(() => resolve(seen)));
    });
  },
  events() {
    return new Promise((resolve) => {
      const connection = mysql.createConnection(config);
      const seen = [];
      const query = connection.query('SELECT id FROM person ORDER BY id');
      query.on('fields', (fields) => seen.push(fields.map((field) => field.name)));
      query.on('result', (row) => seen.push(row));
      query.on('end', () => connection.end(() => resolve(seen)));
    });
  },
  local_file() {
    return new Promise((resolve) => {
      const { Readable } = require('stream');
      const connection = mysql.createConnection({ ...config, flags: ['+LOCAL_FILES'] });
      connection.query(
        { sql: "LOAD DATA LOCAL INFILE 'any' INTO TABLE queue (id, done)", infileStreamFactory: () => Readable.from([Buffer.from('201\t1\n202\t2\n')]) },
        (error, result) => {
          connection.query('SELECT * FROM queue WHERE id > 200 ORDER BY id', (_, rows) => {
            connection.end(() => resolve([error && error.errno, result && result.affectedRows, rows]));
          });
        },
      );
    });
  },
  async pool() {
    const pool = promises.createPool({ ...config, connectionLimit: 5, queueLimit: 0 });
    await pool.query('CREATE TABLE pooled (id INT PRIMARY KEY AUTO_INCREMENT, n INT)');
    await Promise.all(Array.from({ length: 50 }, (_, n) => pool.execute('INSERT INTO pooled (n) VALUES (?)', [n])));
    const [rows] = await pool.query('SELECT COUNT(*) AS c, SUM(n) AS s FROM pooled');
    await pool.end();
    return rows;
  },
  async pool_with_transactions() {
    const pool = promises.createPool({ ...config, connectionLimit: 3 });
    await pool.query('INSERT INTO pooled VALUES (1000, 0)');
    await Promise.all(Array.from({ length: 20 }, async () => {
      const connection = await pool.getConnection();
      await connection.beginTransaction();
      await connection.execute('SELECT n FROM pooled WHERE id = ? FOR UPDATE', [1000]);
      await connection.execute('UPDATE pooled SET n = n + 1 WHERE id = ?', [1000]);
      await connection.commit();
      connection.release();
    }));
    const [rows] = await pool.query('SELECT n FROM pooled WHERE id = 1000');
    await pool.end();
    return rows;
  },
  async change_user(connection) {
    await connection.query("CREATE USER second@'%' IDENTIFIED BY 'secret'");
    await connection.query(`GRANT ALL ON ${config.database}.* TO second@'%'`);
    const other = await promises.createConnection(config);
    await other.changeUser({ user: 'second', password: 'secret' });
    const [rows] = await other.query('SELECT CURRENT_USER() AS me, DATABASE() AS d');
    await other.query('INSERT INTO queue (id) VALUES (301)');
    await other.end();
    return rows;
  },
  async compression() {
    const connection = await promises.createConnection({ ...config, compress: true });
    const text = 'x'.repeat(100000);
    await connection.query('CREATE TABLE long_texts (t LONGTEXT)');
    await connection.execute('INSERT INTO long_texts VALUES (?)', [text]);
    const [rows] = await connection.query('SELECT LENGTH(t) AS l FROM long_texts');
    await connection.end();
    return rows;
  },
  async character_sets() {
    const out = [];
    for (const charset of ['latin1', 'utf8mb4', 'utf8mb4_unicode_ci']) {
      const connection = await promises.createConnection({ ...config, charset });
      await connection.execute('INSERT INTO person (name) VALUES (?)', [`ä ${charset}`]);
      const [rows] = await connection.query('SELECT name, HEX(name) AS h FROM person WHERE name LIKE ?', [`%${charset}`]);
      out.push(rows);
      await connection.end();
    }
    return out;
  },
  async ping_and_statistics(connection) {
    await connection.ping();
    return 'pong';
  },
  async found_rows() {
    const connection = await promises.createConnection({ ...config, flags: ['-FOUND_ROWS'] });
    const [made] = await connection.execute('UPDATE queue SET done = done');
    const [same] = await connection.execute('INSERT INTO queue (id) VALUES (301) ON DUPLICATE KEY UPDATE done = done + 1');
    await connection.end();
    return [made.affectedRows, made.changedRows, same.affectedRows];
  },
};

(async () => {
  const connection = await promises.createConnection(config);
  for (const [name, part] of Object.entries(parts)) {
    let outcome;
    try {
      outcome = await part(connection);
    } catch (error) {
      outcome = `${error.code} ${error.errno} ${error.message}`;
    }
    console.log(JSON.stringify({ name, outcome }));
  }
  await connection.end();
})();
