/**
 * The charging server of the peer that keeps the same promises: reservations and debits are on disk
 * before they are answered (SQLite, WAL, synchronous=FULL, one commit for all requests of a turn),
 * each debit has a ledger entry and a record, and a call is charged once. GET /api/ocs/authorize
 * answers 200 or 402; POST /api/ocs/cdr debits one unit for each second that has begun, at least
 * one; GET /stats tells how many calls were charged. Arguments: the port, and a file that does not
 * exist yet.
 */
import Database from 'better-sqlite3'
import { answer, serveCharging } from './charging-http.mjs'

const [port = '0', file = 'charging.db'] = process.argv.slice(2)
const FIRST_BALANCE = 1e9
/** Seconds that are reserved for a call before it begins. */
const GRANTED = 60

const db = new Database(file)
db.pragma('journal_mode = WAL')
db.pragma('synchronous = FULL')
db.exec(`
  CREATE TABLE wallet (id INTEGER PRIMARY KEY, name TEXT UNIQUE, balance INTEGER NOT NULL);
  CREATE TABLE reservation (id INTEGER PRIMARY KEY, wallet INTEGER NOT NULL,
    amount INTEGER NOT NULL, at INTEGER NOT NULL);
  CREATE TABLE ledger (id INTEGER PRIMARY KEY, wallet INTEGER NOT NULL, amount INTEGER NOT NULL,
    balance_after INTEGER NOT NULL, ref TEXT UNIQUE, at INTEGER NOT NULL);
  CREATE TABLE cdr (id INTEGER PRIMARY KEY, ref TEXT UNIQUE, caller TEXT, callee TEXT,
    duration INTEGER, cost INTEGER, at INTEGER);`)
const addWallet = db.prepare('INSERT INTO wallet (name, balance) VALUES (?, ?)')
const setBalance = db.prepare('UPDATE wallet SET balance = ? WHERE id = ?')
const reserve = db.prepare('INSERT INTO reservation (wallet, amount, at) VALUES (?, ?, ?)')
const release = db.prepare(
  'DELETE FROM reservation WHERE id = (SELECT id FROM reservation WHERE wallet = ? LIMIT 1)',
)
const addEntry = db.prepare(
  'INSERT INTO ledger (wallet, amount, balance_after, ref, at) VALUES (?, ?, ?, ?, ?)',
)
const addRecord = db.prepare(
  'INSERT INTO cdr (ref, caller, callee, duration, cost, at) VALUES (?, ?, ?, ?, ?, ?)',
)

const wallets = new Map()
let charged = 0

function walletOf(caller) {
  const known = wallets.get(caller)
  if (known !== undefined) return known
  const { lastInsertRowid } = addWallet.run(caller, FIRST_BALANCE)
  const wallet = { id: Number(lastInsertRowid), balance: FIRST_BALANCE, reserved: 0 }
  wallets.set(caller, wallet)
  return wallet
}

/** The works of this turn of the event loop, and what is done after their commit. */
let waiting = []
const runAll = db.transaction((works) => works.map(({ work }) => work()))

function inNextCommit(work, done) {
  waiting.push({ work, done })
  if (waiting.length === 1) setImmediate(commit)
}

function commit() {
  const works = waiting
  waiting = []
  const results = runAll(works)
  works.forEach(({ done }, at) => done(results[at]))
}

function authorize(query, response) {
  const caller = new URLSearchParams(query).get('caller')
  inNextCommit(
    () => {
      const wallet = walletOf(caller)
      if (wallet.balance - wallet.reserved < GRANTED) return false
      wallet.reserved += GRANTED
      reserve.run(wallet.id, GRANTED, Date.now())
      return true
    },
    (isAllowed) => {
      if (isAllowed) answer(response, 200, { allow: true, granted_seconds: GRANTED })
      else answer(response, 402, { allow: false })
    },
  )
}

function debit(text, response) {
  const { callid, caller, callee = '', duration } = JSON.parse(text)
  const seconds = Math.max(1, Math.ceil(Number(duration)))
  inNextCommit(
    () => {
      const wallet = walletOf(caller)
      wallet.balance -= seconds
      wallet.reserved -= GRANTED
      setBalance.run(wallet.balance, wallet.id)
      release.run(wallet.id)
      addEntry.run(wallet.id, -seconds, wallet.balance, callid, Date.now())
      addRecord.run(callid, caller, callee, seconds, seconds, Date.now())
    },
    () => {
      charged += 1
      answer(response, 200, { ok: true })
    },
  )
}

serveCharging(port, { authorize, debit, charged: () => charged })
