/**
 * The API with an event log that fills as by real calls, in a process of its own: tenants and calls
 * per second are its arguments. It prints port and keys as one line of JSON, begins with the calls
 * at a line `start`, and answers every line with its CPU time in microseconds.
 */
import { createInterface } from 'node:readline'
import { EventLog } from '../../../engine/event-log.ts'
import type { ActiveCall } from '../../../schema/contracts/calls.ts'
import { startControl } from '../../../control/server.ts'
import type { CallRecord } from '../../../schema/call-record.ts'
import { openControl } from '../control.ts'

const TICK_MS = 20

const tenants = Number(process.argv[2])
const callsPerSecond = Number(process.argv[3])
const log = new EventLog(Date.now)
const control = await openControl({ events: log })
/** One credential reads a hundred streams at most. */
const keys = Math.max(tenants, 20)
if (tenants > 1)
  for (let index = 0; index < tenants; index++) await control.tenant(`tenant-${index}`)
const tokens: string[] = []
for (let index = 0; index < keys; index++) {
  const slug = `tenant-${index % tenants}`
  const scope = { kind: 'pbx', tenant_scope: 'tenant', tenant_slug: slug }
  tokens.push(await control.key({ ...(tenants > 1 && scope), rate_limit_rpm: 100_000 }))
}

const anyPort = { host: '127.0.0.1', port: 0 }
const server = await startControl(control.deps, {
  api: anyPort,
  edge: anyPort,
  every: (intervalMs, work) => {
    const timer = setInterval(work, intervalMs)
    return () => clearInterval(timer)
  },
  limits: { connectionsPerAddress: 4_096 },
})
process.stdout.write(`${JSON.stringify({ port: server.api.port, tokens })}\n`)

let calls = 0
function onePlacedCall(): void {
  const callUuid = `00000000-0000-4000-8000-${String(++calls).padStart(12, '0')}`
  const tenantId = 1 + (calls % tenants)
  const shared = { callUuid, callerNumber: '15550001111', calledNumber: '18005551212' } as const
  const node = 'sip:10.0.0.1:5060;transport=udp'
  const call: ActiveCall = {
    ...shared,
    state: 'RINGING',
    direction: 'inbound',
    startedAt: 0,
    answeredAt: null,
    tenantId,
    customerId: 1,
    setId: 1,
    node,
    carrier: 'trunk',
    stampOffsetMs: 0,
    instance: 'sbc-1',
    peers: { caller: null, callee: null },
  }
  const record: CallRecord = {
    ...shared,
    callId: 'c',
    direction: 'inbound',
    callerName: null,
    startedAt: 0,
    answeredAt: 1,
    endedAt: 2,
    postDialDelayMs: 1,
    billsec: 1,
    disposition: 'ANSWERED',
    sipCode: 200,
    hangupCause: 'NORMAL_CLEARING',
    hangupBy: 'caller',
    denialCode: null,
    setId: 1,
    node,
    carrier: 'trunk',
    attempts: [],
    tenantId,
    customerId: 1,
    ratePrefix: '1',
    currency: 'USD',
    sourceAddress: '',
    isRecovered: false,
    isUnauthorizedByOcs: false,
  }
  log.add({ type: 'call.started', tenantId, call })
  log.add({ type: 'call.ringing', tenantId, call })
  log.add({ type: 'call.answered', tenantId, call })
  log.add({ type: 'call.ended', tenantId, record })
}

let timer: NodeJS.Timeout | undefined
let owed = 0
createInterface({ input: process.stdin })
  .on('line', (command) => {
    if (command === 'start')
      timer = setInterval(() => {
        for (owed += (callsPerSecond * TICK_MS) / 1_000; owed >= 1; owed--) onePlacedCall()
      }, TICK_MS)
    const { user, system } = process.cpuUsage()
    process.stdout.write(`${user + system}\n`)
  })
  .on('close', () => {
    clearInterval(timer)
    void server.stop()
  })
