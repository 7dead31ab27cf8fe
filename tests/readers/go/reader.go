// Follows a server's log with go-mysql, and writes what it was told to a file, a line each.
//
//	reader PORT FLAVOR WAY OUT PLACE
//
// WAY is syncer or canal and file or gtid, such as canal-gtid; PLACE is FILE:POSITION or GTIDs, where
// it begins unless OUT says where an earlier one came to. What belongs together is written at once,
// with the place behind it, so that it may be killed at any time.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/canal"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

type line struct {
	Table  string  `json:"table,omitempty"`
	Kind   string  `json:"kind,omitempty"`
	Before []*text `json:"before,omitempty"`
	After  []*text `json:"after,omitempty"`
	Place  string  `json:"place,omitempty"`
}

type text = string

type output struct {
	file    *os.File
	pending []byte
}

func (out *output) add(one line) {
	data, err := json.Marshal(one)
	check(err)
	out.pending = append(append(out.pending, data...), '\n')
}

func (out *output) reached(place string) {
	out.add(line{Place: place})
	_, err := out.file.Write(out.pending)
	check(err)
	out.pending = nil
}

func (out *output) rows(table string, kind string, rows [][]any) {
	switch kind {
	case canal.UpdateAction:
		for n := 0; n < len(rows); n += 2 {
			out.add(line{Table: table, Kind: kind, Before: texts(rows[n]), After: texts(rows[n+1])})
		}
	case canal.InsertAction:
		for _, row := range rows {
			out.add(line{Table: table, Kind: kind, After: texts(row)})
		}
	case canal.DeleteAction:
		for _, row := range rows {
			out.add(line{Table: table, Kind: kind, Before: texts(row)})
		}
	}
}

func texts(row []any) []*text {
	found := make([]*text, len(row))
	for n, value := range row {
		if bytes, is := value.([]byte); is {
			value = string(bytes)
		}
		if value != nil {
			one := fmt.Sprint(value)
			found[n] = &one
		}
	}
	return found
}

func check(err error) {
	if err != nil {
		log.Fatalf("%+v", err)
	}
}

// opened cuts off what an earlier reader wrote behind its last place, and tells that place.
func opened(path string, place string) (*output, string) {
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	end := 0
	for at := 0; ; {
		length := strings.IndexByte(string(data[at:]), '\n')
		if length < 0 {
			break
		}
		var one line
		check(json.Unmarshal(data[at:at+length], &one))
		at += length + 1
		if one.Place != "" {
			place, end = one.Place, at
		}
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	check(err)
	check(file.Truncate(int64(end)))
	_, err = file.Seek(int64(end), 0)
	check(err)
	return &output{file: file}, place
}

func position(place string) mysql.Position {
	name, number, _ := strings.Cut(place, ":")
	at, err := strconv.ParseUint(number, 10, 32)
	check(err)
	return mysql.Position{Name: name, Pos: uint32(at)}
}

func main() {
	port, flavor, way := os.Args[1], os.Args[2], os.Args[3]
	out, place := opened(os.Args[4], os.Args[5])
	kind, by, _ := strings.Cut(way, "-")
	if kind == "canal" {
		runCanal(port, flavor, by, out, place)
	} else {
		runSyncer(port, flavor, by, out, place)
	}
}

func runSyncer(port string, flavor string, by string, out *output, place string) {
	number, err := strconv.ParseUint(port, 10, 16)
	check(err)
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: serverID(), Flavor: flavor,
		Host: "127.0.0.1", Port: uint16(number), User: "root", MaxReconnectAttempts: 1,
	})
	var stream *replication.BinlogStreamer
	if by == "gtid" {
		set, err := mysql.ParseGTIDSet(flavor, place)
		check(err)
		stream, err = syncer.StartSyncGTID(set)
		check(err)
	} else {
		stream, err = syncer.StartSync(position(place))
		check(err)
	}
	file, _, _ := strings.Cut(place, ":")
	for {
		event, err := stream.GetEvent(context.Background())
		check(err)
		var set mysql.GTIDSet
		isEnd := false
		switch body := event.Event.(type) {
		case *replication.RotateEvent:
			file = string(body.NextLogName)
		case *replication.RowsEvent:
			out.rows(string(body.Table.Schema)+"."+string(body.Table.Table), action(event), body.Rows)
		case *replication.XIDEvent:
			set, isEnd = body.GSet, true
		case *replication.QueryEvent:
			set, isEnd = body.GSet, !isInside(string(body.Query))
		}
		if !isEnd {
			continue
		}
		if by == "file" {
			out.reached(fmt.Sprintf("%s:%d", file, event.Header.LogPos))
		} else if set != nil {
			out.reached(set.String())
		}
	}
}

func serverID() uint32 {
	return 1000 + rand.Uint32()%1000000
}

func action(event *replication.BinlogEvent) string {
	switch event.Header.EventType {
	case replication.WRITE_ROWS_EVENTv1, replication.WRITE_ROWS_EVENTv2:
		return canal.InsertAction
	case replication.UPDATE_ROWS_EVENTv1, replication.UPDATE_ROWS_EVENTv2:
		return canal.UpdateAction
	}
	return canal.DeleteAction
}

// isInside tells whether a statement stands within a group that goes on behind it.
func isInside(query string) bool {
	for _, word := range []string{"BEGIN", "XA START", "XA END", "SAVEPOINT", "ROLLBACK TO"} {
		if strings.HasPrefix(query, word) {
			return true
		}
	}
	return false
}

type handler struct {
	canal.DummyEventHandler
	out *output
	by  string
}

func (one *handler) OnRow(event *canal.RowsEvent) error {
	one.out.rows(event.Table.Schema+"."+event.Table.Name, event.Action, event.Rows)
	return nil
}

func (one *handler) OnTableNotFound(_ *replication.EventHeader, event *replication.RowsEvent) error {
	return nil
}

func (one *handler) OnPosSynced(
	_ *replication.EventHeader, at mysql.Position, set mysql.GTIDSet, _ bool,
) error {
	if one.by == "file" {
		one.out.reached(fmt.Sprintf("%s:%d", at.Name, at.Pos))
	} else if set != nil {
		one.out.reached(set.String())
	}
	return nil
}

func runCanal(port string, flavor string, by string, out *output, place string) {
	config := canal.NewDefaultConfig()
	config.Addr, config.User, config.Flavor = "127.0.0.1:"+port, "root", flavor
	// canal's own default is the same for all that start in the same second.
	config.ServerID = serverID()
	config.Dump.ExecutionPath = ""
	config.MaxReconnectAttempts = 1
	one, err := canal.NewCanal(config)
	check(err)
	one.SetEventHandler(&handler{out: out, by: by})
	if by == "file" {
		check(one.RunFrom(position(place)))
		return
	}
	set, err := mysql.ParseGTIDSet(flavor, place)
	check(err)
	check(one.StartFromGTID(set))
}
