/**
 * The charging server that the peer asks: a wallet in memory behind two paths, and the records of calls in
 * a flat file or, as Tollgate keeps them, in SQLite with a commit every 10 ms. Plain JavaScript and as
 * little as the job allows, so that the peer's figure is not made worse by it.
 */
import { createWriteStream } from 'node:fs'
import { createServer } from 'node:http'

const [port = '0', file = '/dev/null', kind = 'flat'] = process.argv.slice(2)
const store = kind === 'sqlite' ? await openSqlite(file) : openFlatFile(file)
const wallet = { balanceMicros: 1e15 }
const open = new Map()
const authorized = Buffer.from('{"authorized":true}')
const taken = Buffer.from('{}')

const server = createServer((request, response) => {
  const { url } = request
  const query = new URLSearchParams(url.slice(url.indexOf('?') + 1))
  const call = query.get('call')
  const isAuthorize = url.startsWith('/authorize')
  if (isAuthorize) {
    open.set(call, wallet.balanceMicros)
  } else {
    wallet.balanceMicros -= 1_000
    open.delete(call)
    store(call, query, wallet.balanceMicros)
  }
  const body = isAuthorize ? authorized : taken
  response.writeHead(200, { 'Content-Length': body.length })
  response.end(body)
})
server.keepAliveTimeout = 60_000
server.on('connection', (socket) => socket.setNoDelay(true))
server.listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'))

function openFlatFile(path) {
  const records = createWriteStream(path, { flags: 'a' })
  return (_call, query) => records.write(`${query}\n`)
}

/** A record, the debit and the balance for each call, durable with its group. */
async function openSqlite(path) {
  const { default: Sqlite } = await import('better-sqlite3')
  const sqlite = new Sqlite(path)
  sqlite.pragma('journal_mode = WAL')
  sqlite.pragma('synchronous = FULL')
  sqlite.exec(`
    CREATE TABLE cdr (id INTEGER PRIMARY KEY, call TEXT UNIQUE, caller TEXT, callee TEXT, seconds TEXT);
    CREATE TABLE ledger (id INTEGER PRIMARY KEY, ref TEXT UNIQUE, amount INTEGER, balance INTEGER);
    CREATE TABLE wallet (id INTEGER PRIMARY KEY, balance INTEGER);
    INSERT INTO wallet VALUES (1, 1000000000000000);
  `)
  const record = sqlite.prepare('INSERT OR IGNORE INTO cdr VALUES (NULL, ?, ?, ?, ?)')
  const debit = sqlite.prepare('INSERT OR IGNORE INTO ledger VALUES (NULL, ?, -1000, ?)')
  const settle = sqlite.prepare('UPDATE wallet SET balance = ? WHERE id = 1')
  let waiting = []
  const commit = sqlite.transaction((rows) => {
    for (const [call, query, balance] of rows) {
      record.run(call, query.get('caller'), query.get('callee'), query.get('seconds'))
      debit.run(call, balance)
      settle.run(balance)
    }
  })
  return (...row) => {
    if (waiting.length === 0)
      setTimeout(() => {
        const rows = waiting
        waiting = []
        commit(rows)
      }, 10)
    waiting.push(row)
  }
}
