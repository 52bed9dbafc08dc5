/**
 * The report of one day out of ten in a large database, while the event loop is watched: first byte,
 * seconds per 100,000 rows, and how late everything else was. Argument: how many records there are.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { insertCallRecord, type CallRecord } from '../../schema/call-record.ts'
import type { Store } from '../../schema/open.ts'
import { openControl, startOfTime } from '../support/control.ts'

export const describe =
  'one day of 1,000,000 call records: first byte, s per 100,000 rows, loop lag'

const DAYS = 10
const DAY_MS = 86_400_000
const BATCH = 50_000
const LOOP_RESOLUTION_MS = 1

export async function run(words: readonly string[]): Promise<void> {
  const count = Number(words[0] ?? 1_000_000)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-reports-'))
  try {
    await measureAll(join(folder, 'reports.db'), count)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measureAll(path: string, count: number): Promise<void> {
  const control = openControl(path)
  control.tenant('acme')
  fill(control.store, count)
  const all = control.key()
  const tenant = control.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  for (const [who, token] of [
    ['all tenants', all],
    ['a tenth of them', tenant],
  ] as const)
    for (const type of ['application/x-ndjson', 'text/csv', 'application/json'])
      console.log(`  ${who}, ${type}: ${await measure(control.app, token, type)}`)
  control.store.close()
}

async function measure(
  app: ReturnType<typeof openControl>['app'],
  token: string,
  type: string,
): Promise<string> {
  const from = new Date(startOfTime + 4 * DAY_MS).toISOString()
  const before = new Date(startOfTime + 5 * DAY_MS).toISOString()
  const delay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
  delay.enable()
  await sleep(50)
  delay.reset()
  const startedAt = performance.now()
  const response = await app.request(`/api/v1/reports/cdrs?start_date=${from}&end_date=${before}`, {
    headers: { Authorization: `Bearer ${token}`, Accept: type },
  })
  const body: ReadableStream<Uint8Array> | null = response.body
  let firstByteMs = 0
  let bytes = 0
  let lines = 0
  for await (const chunk of body ?? []) {
    if (bytes === 0) firstByteMs = performance.now() - startedAt
    bytes += chunk.length
    for (const byte of chunk) if (byte === 10) lines += 1
  }
  const seconds = (performance.now() - startedAt) / 1_000
  delay.disable()
  const lagMs = Math.max(0, delay.percentile(99) / 1e6 - LOOP_RESOLUTION_MS)
  const rate = lines > 1 ? `, ${((seconds * 100_000) / lines).toFixed(2)} s per 100,000 rows` : ''
  return (
    `first byte ${firstByteMs.toFixed(0)} ms, whole ${seconds.toFixed(2)} s${rate}, ` +
    `loop lag p99 ${lagMs.toFixed(1)} ms, ${(bytes / 1e6).toFixed(1)} MB`
  )
}

/** Every tenth call is the tenant's; the calls are spread evenly over the days. */
function fill(store: Store, count: number): void {
  const insert = insertCallRecord(store)
  const cost = { costMicros: 110_000, currency: 'USD' }
  const fillBatch = store.sqlite.transaction((first: number, end: number) => {
    for (let call = first; call < end; call++)
      insert(recordOf(call, startOfTime + Math.floor((call / count) * DAYS * DAY_MS)), cost)
  })
  for (let first = 0; first < count; first += BATCH)
    fillBatch(first, Math.min(first + BATCH, count))
}

function recordOf(call: number, startedAt: number): CallRecord {
  const node = 'sip:10.0.0.1:5060;transport=udp'
  const endedAt = startedAt + 62_000
  return {
    ...{ callUuid: `00000000-0000-4000-8000-${String(call).padStart(12, '0')}` },
    ...{ callId: `${call}@caller`, direction: 'inbound', callerNumber: '15550001111' },
    ...{ callerName: null, calledNumber: '18005551212', startedAt, endedAt },
    ...{ answeredAt: startedAt + 2_000, postDialDelayMs: 150, billsec: 60 },
    ...{ disposition: call % 5 === 0 ? 'BUSY' : 'ANSWERED', sipCode: 200 },
    ...{ hangupCause: 'NORMAL_CLEARING', hangupBy: 'caller', denialCode: null },
    ...{ setId: 1, node, carrier: 'trunk', tenantId: call % 10 === 0 ? 1 : null },
    ...{ customerId: null, ratePrefix: '1', currency: 'USD', sourceAddress: '203.0.113.7:5060' },
    attempts: [{ destination: node, status: 200, reason: 'OK', startedAt, endedAt }],
    ...{ isRecovered: false, isUnauthorizedByOcs: false },
  }
}
