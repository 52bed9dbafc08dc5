/**
 * Lists, searches and sums of a platform that has grown, one after the other, each from the program itself: how long
 * each took, how late the event loop, which carries SIP too, was meanwhile at worst, and how long its thread worked: on a
 * busy machine that is what counts, because the loop is late by what other programs do, too.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { fillHistories } from './load/long-histories.ts'
import { LoopWatch } from './load/loop-lag.ts'
import { issueKeys } from './load/many-keys.ts'
import { DAY_MS, fillRecords, startOfRecords } from './load/many-records.ts'
import { MONTH_DAYS, monthOfCalls } from './load/month-of-calls.ts'
import { oneCustomer } from './load/one-customer.ts'

export const describe =
  'how late the event loop is beside searches of 2,000,000 records, 100,000 rates, 10,000 keys, a long audit and two weeks of guessing; arguments: records=2000000 keys=10000 audited=1000000 ledger=2000000 times=2'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const size = (name: string, usual: number) => Number(options.get(name) ?? usual)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-long-reads-'))
  try {
    const path = join(folder, 'grown.db')
    const records = size('records', 2_000_000)
    fillRecords(path, records, (text) => console.log(`  ${text}`), monthOfCalls)
    await issueKeys(path, size('keys', 10_000))
    const sizes = {
      rates: 100_000,
      customers: 10_000,
      extensions: 10_000,
      audited: size('audited', 1_000_000),
      ledger: size('ledger', 2_000_000),
      guessedInHour: size('guessed', 2_000),
      usedKeys: size('used', 300),
    }
    fillHistories(path, sizes, Date.now())
    await measureAll(path, records, size('times', 2))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measureAll(path: string, records: number, times: number): Promise<void> {
  const watch = new LoopWatch()
  const environment = {
    DATABASE_PATH: path,
    LOG_LEVEL: 'warn',
    CDR_RETENTION_DAYS: '0',
    ...watch.environment,
  }
  const tollgate = await TollgateProcess.start(oneCustomer([5_999]), environment)
  try {
    const token = await tollgate.createKey('--name', 'asker', '--scopes', '*')
    const ask = async ({ path: to, body }: Question): Promise<string> => {
      const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${to}`, {
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
      })
      return `${answer.status} ${(await answer.text()).length} bytes`
    }
    for (const question of questions(records)) {
      const took: number[] = []
      const late: number[] = []
      const worked: number[] = []
      let told = ''
      for (let time = 0; time < times; time += 1) {
        await watch.lagOf(tollgate)
        const begin = performance.now()
        const before = loopMs(tollgate.pid)
        told = await ask(question)
        took.push(performance.now() - begin)
        worked.push(loopMs(tollgate.pid) - before)
        // The program's clock of its loop has to be late by it first.
        await pause(50)
        late.push((await watch.lagOf(tollgate)).maxMs)
      }
      const column = (values: readonly number[]) =>
        Math.max(...values)
          .toFixed(0)
          .padStart(6)
      console.log(
        `  ${question.name.padEnd(44)} ${column(took)} ms  loop late by ${column(late)} ms  worked ${column(worked)} ms  ${told}`,
      )
    }
  } finally {
    await tollgate.stop()
    watch.close()
  }
}

/** CPU of the thread of the event loop, since it started. */
const loopMs = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

interface Question {
  readonly name: string
  readonly path: string
  readonly body?: object
}

function questions(records: number): readonly Question[] {
  const text = (ms: number) => new Date(ms).toISOString()
  const end = startOfRecords + (MONTH_DAYS - 0.5) * DAY_MS
  const month = (days: number) => `start_date=${text(end - days * DAY_MS)}&end_date=${text(end)}`
  const lastCall = `00000000-0000-4000-8000-${String(records - 1).padStart(12, '0')}`
  const hour = (ago: number) => text(Date.now() - ago * 3_600_000)
  const period = { start: hour(7 * 24 - 1), end: hour(0) }
  const get = (path: string): Question => ({ name: `GET ${path.slice(0, 40)}`, path })
  const tool = (name: string, body: object): Question => ({
    name: `${name} ${JSON.stringify(body).slice(0, 30)}`,
    path: `/mcp/tools/${name}`,
    body,
  })
  return [
    get('/health'),
    { name: 'find_anomalies, guessing, a day', path: '/anomalies?kinds=registration' },
    {
      name: 'find_anomalies, guessing, a week',
      path: `/anomalies?kinds=registration&start_date=${hour(7 * 24 - 1)}`,
    },
    {
      name: 'find_anomalies, keys, a week',
      path: `/anomalies?kinds=key_use&start_date=${hour(7 * 24 - 1)}`,
    },
    { name: 'find_anomalies, calls, a day', path: `/anomalies?kinds=spend,trunk,rate&${month(1)}` },
    { name: 'failures of a day of calls', path: `/metrics/failures?${month(1)}` },
    { name: 'failures of a week of calls', path: `/metrics/failures?${month(7)}` },
    { name: 'failures of keys, a week', path: `/metrics/failures?start_date=${hour(7 * 24 - 1)}` },
    { ...tool('get_telemetry', period), name: 'get_telemetry, a week' },
    tool('explain_call', { call_uuid: lastCall }),
    get('/audit?limit=50'),
    get('/audit?target=nowhere'),
    get('/audit?agents=false&action=DELETE'),
    tool('search_audit', { target: 'nowhere', start: hour(300 * 24) }),
    get('/rates?search=nowhere'),
    get('/rates?page=500&limit=200'),
    get('/rates/export?rate_plan=filled'),
    get('/customers?search=nowhere'),
    get('/customers?page=150'),
    tool('list_customers', { low_balance: true }),
    get('/customers/1000/ledger'),
    get('/customers/1000/ledger?kind=topup'),
    { name: 'ledger, an hour', path: `/customers/1000/ledger?start_date=${hour(1)}` },
    tool('get_ledger', { customer: 1_000, start: hour(1) }),
    get('/application-keys?search=nowhere'),
    get('/application-keys?state=active&page=100'),
    tool('list_sbc_api_keys', { search: 'nowhere' }),
    tool('get_key_activity', { uuid: 'bench 0', start: hour(31 * 24 - 1) }),
    get('/pbx/extensions?search=nowhere'),
    get('/reports/calls?group_by=customer&' + month(28)),
    tool('search_cdrs', { number: '999999', start: text(end - 7 * DAY_MS), end: text(end) }),
    {
      name: 'a guard, tried first',
      path: '/spend-guards',
      body: { customer: 1_000, prefix: '49', action: 'block', reason: 'bench', dry_run: true },
    },
  ]
}
