-- What MariaDB has beside tests/dumped_schema.sql. No binlog of statements can have sequences.

CREATE DATABASE dump_c;
USE dump_c;
CREATE SEQUENCE counter START WITH 5 INCREMENT BY 3 CACHE 10;
SELECT NEXTVAL(counter), NEXTVAL(counter);
CREATE TABLE sequenced (a INT PRIMARY KEY DEFAULT (NEXT VALUE FOR counter), b INT) ENGINE=InnoDB;

USE dump_a;
CREATE TABLE crash_safe (a INT PRIMARY KEY, i INET6, u UUID) ENGINE=Aria;
INSERT INTO crash_safe VALUES (1, '::1', '6ccd780c-baba-1026-9564-5b8c656024db');
CREATE TABLE hidden_column (a INT, b INT INVISIBLE DEFAULT 4, c VARCHAR(10) COMPRESSED) ENGINE=InnoDB;
INSERT INTO hidden_column (a, b, c) VALUES (1, 2, 'x'), (3, 4, 'y');
DELIMITER ;;
SET sql_mode = 'ORACLE' ;;
CREATE PROCEDURE of_oracle(x INT) AS n INT := 5; BEGIN INSERT INTO "noted" ("what") VALUES ('oracle ' || x || n); END ;;
CREATE PROCEDURE not_read(x INT) AS n INT; BEGIN n := x; IF n = 1 THEN n := 2; ELSIF n = 2 THEN n := 1; END IF; END ;;
CREATE TRIGGER not_read BEFORE INSERT ON hidden_column FOR EACH ROW BEGIN :NEW.b := 7; END ;;
SET sql_mode = DEFAULT ;;
DELIMITER ;
