/**
 * Seconds of each report over millions of records, from the program itself: medians and the worst.
 * The records are those of many customers, carriers and prefixes, and all are in the daily sums.
 */
import { readFileSync } from 'node:fs'
import { DAY_MS } from '../../schema/clock.ts'
import type { TollgateProcess } from '../support/tollgate-process.ts'
import { oneCustomer } from './load/one-customer.ts'
import { optionsOf } from './load/options.ts'
import { RECORD_DAYS, withRecords } from './load/record-program.ts'
import { callIdOf, load } from './load/varied-records.ts'

const usual = { records: '5000000', times: '5', database: 'sqlite', keep: '' }

export const describe =
  'each report over 5,000,000 records of 90 days, 2,000 customers, 20 carriers, 500 prefixes, ' +
  'when their blocks of columns are made; keep=FILE (or the URL of a database) uses the records ' +
  'of a run before; arguments: ' +
  Object.entries(usual)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')

export async function run(words: readonly string[] = []): Promise<void> {
  const { records, times, database, keep } = optionsOf(words, usual)
  const options = { records: Number(records), database, keep }
  await withRecords(options, oneCustomer([5_060]), (tollgate, start) =>
    measure(tollgate, start, Number(times)),
  )
}

async function measure(tollgate: TollgateProcess, start: number, times: number): Promise<void> {
  const token = await tollgate.createKey('--name', `bench ${Date.now()}`, '--scopes', '*')
  const ask = askerOf(tollgate.apiPort, token)
  for (const [name, question] of questions(start)) {
    const seconds: number[] = []
    const before = cpuSeconds(tollgate.pid)
    let said = ''
    for (let time = 0; time < times; time += 1) {
      const begin = performance.now()
      said = await ask(question)
      seconds.push((performance.now() - begin) / 1_000)
    }
    const sorted = seconds.toSorted((one, other) => one - other)
    const median = sorted[Math.floor(sorted.length / 2)] ?? NaN
    console.log(
      `  ${name}: median ${median.toFixed(3)} s, worst ${(sorted.at(-1) ?? NaN).toFixed(3)} s` +
        `, CPU ${((cpuSeconds(tollgate.pid) - before) / times).toFixed(3)} s (load ${load()})${said}`,
    )
  }
}

type Question = string | { readonly tool: string; readonly arguments: object }

function* questions(start: number): Generator<readonly [string, Question], void> {
  const at = (day: number, ms = 0) => new Date(start + day * DAY_MS + ms).toISOString()
  const between = (from: number, before: number, ms = 0) =>
    `start_date=${at(from, ms)}&end_date=${at(before, ms)}`
  for (const [days, from] of [
    [90, 0],
    [1, 89],
  ] as const) {
    const period = between(from, 90)
    for (const group of ['customer', 'carrier', 'destination', 'day'])
      yield [`margins by ${group}, ${days} days`, `margins?${period}&group_by=${group}`]
    yield [
      `margins of all customers as CSV, ${days} days`,
      `margins?${period}&group_by=customer&format=csv`,
    ]
    for (const group of [
      'customer',
      'tenant',
      'caller',
      'callee_prefix',
      'node',
      'carrier',
      'denial_code',
      'hour',
      'minute',
    ])
      yield [`calls by ${group}, ${days} days`, `calls?${period}&group_by=${group}`]
    for (const filter of [
      'group_by=callee_prefix&customer=77',
      'group_by=carrier&customer=77',
      'group_by=customer&carrier=carrier+3',
      'group_by=customer&callee_prefix=1013',
      'group_by=carrier&callee_prefix=1013',
      'group_by=customer&disposition=BUSY',
      'group_by=hour&customer=77',
    ])
      yield [`calls ${filter}, ${days} days`, `calls?${period}&${filter}`]
  }
  for (const filter of [
    '',
    '&disposition=BUSY',
    '&order=newest',
    '&customer_id=77',
    '&carrier=carrier+3',
    '&number=15550000380',
    '&cause=no_rate',
    '&cause=blocked',
    '&sort=-cost',
    '&sort=margin&loss=true',
    '&called=1013*&code=486,503',
    '&duration_from=290&carrier=carrier+3,carrier+4',
    '&cost_from=0.03&order=newest',
    `&call_id=${callIdOf(777_777)}`,
  ])
    yield [
      `records${filter}, page 1, 90 days`,
      `cdrs?${between(0, RECORD_DAYS)}&page=1&limit=50${filter}`,
    ]
  yield [
    'calls by customer, 30 days from noon',
    `calls?${between(59, 89, DAY_MS / 2)}&group_by=customer`,
  ]
  yield ['carriers, 30 days', `carriers?${between(60, 90)}`]
  yield ['carriers, 1 day', `carriers?${between(89, 90)}`]
  for (const days of [1, 7])
    yield [
      `anomalies, ${days} days`,
      { tool: 'find_anomalies', arguments: { start: at(90 - days), end: at(90) } },
    ]
}

function askerOf(port: number, token: string) {
  return async (question: Question): Promise<string> => {
    const base = `http://127.0.0.1:${port}`
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer =
      typeof question === 'string'
        ? await fetch(`${base}/api/v1/reports/${question}`, { headers })
        : await fetch(`${base}/mcp`, {
            method: 'POST',
            headers: { ...headers, accept: 'application/json, text/event-stream' },
            body: JSON.stringify({
              jsonrpc: '2.0',
              id: 1,
              method: 'tools/call',
              params: { name: question.tool, arguments: question.arguments },
            }),
          })
    const text = await answer.text()
    if (!answer.ok || text.includes('"isError":true'))
      return `: ${answer.status} ${text.slice(0, 300)}`
    const [source = ''] = /"source":"\w+"/.exec(text) ?? []
    return text.includes('"complete":false') ? ` NOT COMPLETE ${source}` : ` ${source}`
  }
}

/** Of all threads, in ticks of 10 ms; a database server is another process. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}
