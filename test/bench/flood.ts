/** Calls of a trunk while a stranger floods the same port: does the trunk notice? */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Listener } from '../../engine/sip-server/index.ts'
import { sdp, SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { cpuMicros } from './load/process-cpu.ts'

export const describe =
  'flood: success and set-up delay of calls during 10,000 packets/s from one other source'

const packetsPerSecond = 10_000
const callsPerSecond = 50
const seconds = 10
/** The flooder's own start takes a core for a moment. */
const settleMs = 2_000

export async function run(): Promise<void> {
  const listener = (port: number): Listener => ({
    protocol: 'udp',
    address: '127.0.0.1',
    port,
    advertisedHost: '127.0.0.1',
    advertisedPort: port,
  })
  // The node needs a port before Tollgate has one; it only answers.
  const node = await SipPeer.open(listener(9))
  const tollgate = await TollgateProcess.start(
    {
      dispatcher: [
        {
          endpoint_name: 'bench',
          algorithm: 8,
          set_id: 1,
          nodes: [{ host: '127.0.0.1', internal_port: node.port }],
        },
      ],
    },
    {
      TRUSTED_SOURCES: '127.0.0.1/32',
      UNKNOWN_CALLER: 'allow',
      LOG_LEVEL: 'warn',
      // The node lives in this process, which is busy itself; that it is late says nothing here.
      PROBE_FAILURES: '100',
    },
  )
  const caller = await SipPeer.open(listener(tollgate.sipPort))
  const over = new AbortController()
  answerAll(node, over.signal)
  try {
    await calls(caller, tollgate, callsPerSecond)
    const quiet = await measure('quiet', caller, tollgate)
    const flooder = await startFlood(tollgate.sipPort)
    await new Promise((resolve) => setTimeout(resolve, settleMs))
    const flooded = await measure('flooded', caller, tollgate)
    flooder.kill()
    const added = percentile(flooded, 0.99) - percentile(quiet, 0.99)
    console.log(`  added set-up delay p99 ${added.toFixed(1)} ms`)
    for (const line of tollgate.log) console.log(`  log: ${line.slice(0, 160)}`)
  } finally {
    over.abort()
    caller.close()
    await tollgate.stop()
    node.close()
  }
}

async function measure(
  name: string,
  caller: SipPeer,
  tollgate: TollgateProcess,
): Promise<readonly number[]> {
  const before = cpuMicros([tollgate.pid])
  const delays = await calls(caller, tollgate, callsPerSecond * seconds)
  const cpu = (cpuMicros([tollgate.pid]) - before) / 1e4 / seconds
  const success = (100 * delays.length) / (callsPerSecond * seconds)
  console.log(
    `  ${name.padEnd(8)} success ${success.toFixed(1)} %  set-up p50 ${percentile(delays, 0.5).toFixed(1)} ` +
      `p99 ${percentile(delays, 0.99).toFixed(1)} ms  ${cpu.toFixed(0)} % of a core`,
  )
  return delays
}

/** Places so many calls, one after the other in time; answers with the set-up delays of the good ones. */
async function calls(
  caller: SipPeer,
  tollgate: TollgateProcess,
  count: number,
): Promise<readonly number[]> {
  const startedAt = performance.now()
  const results: Promise<number | undefined>[] = []
  for (let index = 0; index < count; index++) {
    const wait = startedAt + (index * 1_000) / callsPerSecond - performance.now()
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
    results.push(call(caller, tollgate).catch(() => undefined))
  }
  const delays = await Promise.all(results)
  return delays.filter((delay) => delay !== undefined)
}

async function call(caller: SipPeer, tollgate: TollgateProcess): Promise<number> {
  const leg = caller.leg(`sip:15551234@127.0.0.1:${tollgate.sipPort}`)
  const ofCall = (status: number, method: string) =>
    caller.next(
      (message) =>
        message.get('Call-ID') === leg.callId &&
        message.status === status &&
        message.get('CSeq').endsWith(method),
    )
  const startedAt = performance.now()
  caller.request('INVITE', leg, { body: sdp('offer') })
  caller.learn(leg, await ofCall(200, 'INVITE'))
  const delay = performance.now() - startedAt
  caller.request('ACK', leg)
  caller.request('BYE', leg)
  await ofCall(200, 'BYE')
  return delay
}

/** A node that takes every call at once. */
function answerAll(node: SipPeer, over: AbortSignal): void {
  const serve = async (method: string): Promise<void> => {
    while (!over.aborted) {
      const request = await node.next(method).catch(() => undefined)
      const content = method === 'INVITE' ? { tag: 'n', body: sdp('answer') } : {}
      if (request) node.reply(request, 200, content)
    }
  }
  for (const method of ['INVITE', 'BYE', 'OPTIONS']) void serve(method)
}

async function startFlood(sipPort: number): Promise<ChildProcess> {
  const flooder = fork(`${import.meta.dirname}/load/flooder.ts`, [
    String(sipPort),
    String(packetsPerSecond),
  ])
  await once(flooder, 'message')
  return flooder
}

function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN
}
