/**
 * Milliseconds of a page with totals of `GET /reports/cdrs` over 90 days, for each filter and each
 * pair of filters, asked by the platform and by a tenant; and lines per second of an export.
 */
import { readFileSync } from 'node:fs'
import { DAY_MS } from '../../schema/clock.ts'
import type { TollgateProcess } from '../support/tollgate-process.ts'
import { oneCustomer } from './load/one-customer.ts'
import { optionsOf } from './load/options.ts'
import { RECORD_DAYS, withRecords } from './load/record-program.ts'
import { callIdOf, load } from './load/varied-records.ts'

const usual = { records: '5000000', times: '3', pairs: '1', database: 'sqlite', keep: '' }

export const describe =
  'a page with totals for each filter and each pair of filters of 5,000,000 records, and exports; ' +
  'pairs=0: single filters only; arguments: ' +
  Object.entries(usual)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')

export async function run(words: readonly string[] = []): Promise<void> {
  const { records, times, pairs, database, keep } = optionsOf(words, usual)
  const options = { records: Number(records), database, keep }
  await withRecords(options, oneCustomer([5_060]), async (tollgate, start) => {
    const platform = await tollgate.createKey('--name', `p ${Date.now()}`, '--scopes', '*')
    const named = ['--name', `t ${Date.now()}`, '--scopes', '*', '--tenant', 't5']
    const tenant = await tollgate.createKey(...named)
    for (const [who, token] of [
      ['platform', platform],
      ['tenant', tenant],
    ] as const) {
      const ask = asking(tollgate, token, start)
      await measure(who, ask, filters, Number(times), true)
      await measure(`${who}, sorted`, ask, sorts, Number(times), true)
      if (pairs === '1') await measure(`${who}, pairs`, ask, pairsOf(filters), 1, false)
    }
    for (const format of ['csv', 'ndjson']) await measureExport(tollgate, platform, start, format)
  })
}

/** What the records have, and what few or none of them have. */
const filters: readonly string[] = [
  '',
  'number=15550000380',
  'number=1555*',
  'caller=15550000380',
  'called=1013*',
  'called=10131000077',
  'extension=15550000380,15550000381,15550000382',
  'customer_id=77',
  'customer_id=77,78,79,80,81,82',
  'carrier=carrier+3',
  'carrier=carrier+3,carrier+4',
  'node=10.0.0.2',
  'instance=sbc-2',
  'set_id=1',
  'disposition=BUSY',
  'disposition=ANSWERED',
  'direction=outbound',
  'code=486,503',
  'cause=no_rate',
  'cause=blocked',
  `call_id=${callIdOf(777_777)}`,
  'call_uuid=00000000-0000-4000-8000-100000777777',
  'tag=crm:313',
  'verification=failed',
  'attestation=A',
  'duration_from=290',
  'duration_from=10&duration_to=290',
  'billsec_from=100&billsec_to=200',
  'cost_from=0.03',
  'cost_to=0.02',
  'mos_to=2',
  'pdd_from=1000',
  'margin_to=0.001',
  'loss=true',
]

const sorts: readonly string[] = [
  'sort=start',
  'sort=-start',
  'sort=end',
  'sort=-duration',
  'sort=-billsec',
  'sort=-cost',
  'sort=mos',
  'sort=-pdd',
  'sort=margin',
  'sort=-code',
]

function pairsOf(names: readonly string[]): readonly string[] {
  const wanted = names.filter((name) => name !== '')
  const nameOf = (filter: string) => filter.split('=')[0]
  return wanted.flatMap((one, index) =>
    wanted
      .slice(index + 1)
      .filter((other) => nameOf(other) !== nameOf(one))
      .map((other) => `${one}&${other}`),
  )
}

interface Answer {
  readonly ms: number
  readonly cpuMs: number
  readonly calls: number
  readonly isComplete: boolean
}

type Ask = (filter: string) => Promise<Answer>

function asking({ apiPort, pid }: TollgateProcess, token: string, start: number): Ask {
  const period = periodOf(start, 0, RECORD_DAYS)
  return async (filter) => {
    const more = filter === '' ? '' : `&${filter}`
    const url = `http://127.0.0.1:${apiPort}/api/v1/reports/cdrs?${period}&page=1&limit=50${more}`
    const [begin, cpu] = [performance.now(), cpuSeconds(pid)]
    const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
    const body = await answer.text()
    const ms = performance.now() - begin
    if (answer.status !== 200) throw new Error(`${filter}: ${answer.status} ${body.slice(0, 300)}`)
    const { total_calls: calls, complete } = JSON.parse(body) as {
      readonly total_calls: number
      readonly complete: boolean
    }
    return { ms, cpuMs: (cpuSeconds(pid) - cpu) * 1_000, calls, isComplete: complete }
  }
}

/** The longest that any filter may take. */
const MOST_MS = 500
const LISTED = 5

async function measure(
  what: string,
  ask: Ask,
  asked: readonly string[],
  times: number,
  isListed: boolean,
): Promise<void> {
  const found: { readonly filter: string; readonly ms: number; readonly text: string }[] = []
  for (const filter of asked) {
    const answers: Answer[] = []
    for (let time = 0; time < times; time += 1) answers.push(await ask(filter))
    const ms = medianOf(answers.map((each) => each.ms))
    const cpuMs = medianOf(answers.map((each) => each.cpuMs))
    const [first] = answers
    const text =
      `${filter || 'no filter'}: median ${ms.toFixed(0)} ms, worst ` +
      `${Math.max(...answers.map((each) => each.ms)).toFixed(0)} ms, CPU ${cpuMs.toFixed(0)} ms` +
      ` (${first?.calls} calls)${first?.isComplete === true ? '' : ' NOT COMPLETE'}`
    found.push({ filter, ms, text })
    if (isListed) console.log(`  ${what}: ${text}`)
  }
  const slowest = found.toSorted((one, other) => other.ms - one.ms)
  const over = slowest.filter(({ ms }) => ms > MOST_MS)
  console.log(
    `  ${what}: median ${medianOf(found.map(({ ms }) => ms)).toFixed(0)} ms; ${over.length} of ` +
      `${found.length} take more than ${MOST_MS} ms (load ${load()}); the slowest:`,
  )
  for (const { text } of slowest.slice(0, LISTED)) console.log(`    ${text}`)
}

const medianOf = (numbers: readonly number[]): number =>
  numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? NaN

/** Days of one export: some hundred thousand lines. */
const EXPORTED_DAYS = 9

async function measureExport(
  { apiPort, pid }: TollgateProcess,
  token: string,
  start: number,
  format: string,
): Promise<void> {
  const period = periodOf(start, 40, 40 + EXPORTED_DAYS)
  const url = `http://127.0.0.1:${apiPort}/api/v1/reports/cdrs?${period}&format=${format}`
  for (const filter of ['', '&disposition=ANSWERED', '&direction=outbound&billsec_from=100']) {
    const [begin, cpu] = [performance.now(), cpuSeconds(pid)]
    const answer = await fetch(url + filter, { headers: { authorization: `Bearer ${token}` } })
    let [lines, bytes, firstMs] = [0, 0, 0]
    for await (const chunk of answer.body ?? []) {
      const piece = chunk as Uint8Array
      if (bytes === 0) firstMs = performance.now() - begin
      bytes += piece.length
      for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, at + 1)) lines += 1
    }
    const seconds = (performance.now() - begin) / 1_000
    console.log(
      `  export as ${format}${filter}: ${lines} lines, ${(lines / seconds).toFixed(0)} a second, ` +
        `${(bytes / 1e6 / seconds).toFixed(0)} MB/s, first byte ${firstMs.toFixed(0)} ms, CPU ` +
        `${(((cpuSeconds(pid) - cpu) / lines) * 1e6).toFixed(1)} us a line (load ${load()})`,
    )
  }
}

const periodOf = (start: number, from: number, before: number): string => {
  const at = (day: number) => new Date(start + day * DAY_MS).toISOString()
  return `start_date=${at(from)}&end_date=${at(before)}`
}

/** Of all threads, in ticks of 10 ms; a database server is another process. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}
