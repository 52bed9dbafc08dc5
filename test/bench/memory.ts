/**
 * Memory, of the SIP core alone and of the program. After 42,000 calls at 700/s and 58,000 at 500/s,
 * without a pause, the program has 449 MB (523 while V8 marked only when the heap had tripled). At
 * rest it had 164.
 *
 * After 30,000 calls at 500/s V8's heap has 190 to 240 MB, of which 54 are the young generation and
 * 44 of the old one live; buffers outside it 59 (the log of SIP messages, answers for repetitions,
 * lines of the journal), the C library 65 (V8's compilers once took 52), and Node itself 54.
 *
 * Tried: the heap may grow by 60 % in place of 100: 40 MB less for 2 % more CPU. Thresholds of the C
 * library for maps and trims of 256 kB: no difference.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { answer, calleeSdp, dialogIdOf, invite } from '../support/callee.ts'
import { invited, respond } from '../support/caller.ts'
import { header, requestOf, sdp, sip, tagIn, VirtualServer } from '../support/sip-core.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { residentMegabytes } from './load/process-cpu.ts'
import { type LoadResult, placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'heap that the SIP core holds per call; resident memory of the program at rest and under calls (at most 330 MB after ' +
  '100,000), and whether it holds a high rate cleanly; ' +
  'arguments: steady=60 (seconds) at=700 rate=500 calls=100000 more=50000, calls=0 for the core alone'

const calls = 5_000

export async function run(words: readonly string[] = []): Promise<void> {
  const plan = numbersOf(words, usual)
  ofCore()
  if (plan.calls > 0) await ofProgram(plan)
}

const usual = { steady: 60, at: 700, rate: 500, calls: 100_000, more: 50_000 }

/** How long the program rests before it is looked at. Milliseconds. */
const restMs = 10_000
const MOST_MEGABYTES = 330
/** The part of the calls that succeed while it holds a rate cleanly. */
const LEAST_CLEAN = 0.999

/** `calls` are placed in all, the first of them at the high rate. */
async function ofProgram({ steady, at, rate, calls: all, more }: typeof usual): Promise<void> {
  const nodes = [await startNode(), await startNode(), await startNode()]
  const tollgate = await TollgateProcess.start(oneCustomer(nodes.map(({ port }) => port)), {
    LOG_LEVEL: 'warn',
  })
  const print = (what: string): number => {
    const megabytes = residentMegabytes(tollgate.pid)
    const ofFiles = residentMegabytes(tollgate.pid, 'RssFile').toFixed(0)
    console.log(
      `${megabytes.toFixed(0).padStart(8)}  MB resident ${what} (${ofFiles} of it mapped files)`,
    )
    return megabytes
  }
  let succeeded = 0
  const load = async (perSecond: number, count: number): Promise<LoadResult> => {
    const result = await placeCalls(tollgate.sipPort, perSecond, count, caller)
    succeeded += result.succeeded
    return result
  }
  try {
    await new Promise((resolve) => setTimeout(resolve, restMs))
    print('at rest after the start')
    const fast = Math.min(all, at * steady)
    if (fast > 0) printSteady(at, fast / at, await load(at, fast))
    if (all > fast) await load(rate, all - fast)
    if (print(`after ${succeeded} of ${all} calls`) > MOST_MEGABYTES)
      console.log(`          ← more than ${MOST_MEGABYTES}`)
    if (more > 0) await load(rate, more)
    if (more > 0) print(`after ${succeeded} of ${all + more} calls`)
  } finally {
    await tollgate.stop()
    for (const node of nodes) await node.stop()
  }
}

function printSteady(rate: number, seconds: number, result: LoadResult): void {
  const { calls: placed, succeeded, retransmissions, setupP50Ms, setupP99Ms } = result
  const isClean = succeeded >= placed * LEAST_CLEAN
  console.log(
    `  ${rate}/s for ${seconds.toFixed(0)} s: ${isClean ? 'clean' : '← not clean'}, ${succeeded} of ${placed} calls, ` +
      `${retransmissions} retransmissions, set-up p50 ${setupP50Ms.toFixed(1)} ms, p99 ${setupP99Ms.toFixed(1)} ms`,
  )
}

function ofCore(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = (): number => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const measure = (isHungUp: boolean, restMs: number): number => {
    const server = new VirtualServer({
      limits: { maxUnanswered: 1_000_000, maxDialogs: 1_000_000 },
    })
    let placed = 0
    const place = (count: number): void => {
      for (let left = count; left > 0; left -= 1) placeCall(server, (placed += 1), isHungUp)
    }
    place(100)
    const before = used()
    place(calls)
    server.advance(restMs)
    const bytes = (used() - before) / calls
    // It lives until here.
    server.advance(0)
    return bytes
  }
  for (const [what, isHungUp, restMs] of [
    ['per call that ended within the last 6 s', true, 0],
    ['per call that ended 10 to 16 s ago', true, 10_000],
    ['per call that ended 2 minutes ago', true, 120_000],
    ['per live call of 2 minutes', false, 120_000],
  ] as const)
    console.log(`${measure(isHungUp, restMs).toFixed(0).padStart(8)}  bytes ${what}`)
}

const MS_PER_CALL = 1_000 / 800

/**
 * Both legs of a bridged call, seven messages in and seven out, and nothing of them kept by the
 * rig.
 */
function placeCall(server: VirtualServer, number: number, isHungUp: boolean): void {
  const [callId, fromTag] = [`c${number}@203.0.113.7`, `f${number}`]
  const of = (method: string, cseq: number, toTag?: string, body?: string): string =>
    requestOf(method, {
      callId,
      fromTag,
      cseq,
      branch: `z9hG4bK-${number}-${method}`,
      ...(toTag !== undefined && { toTag }),
      ...(body !== undefined && { body }),
    })
  const transactionId = invited(server, of('INVITE', 1, undefined, sdp))
  const request = invite(server)
  answer(server, request, 180)
  respond(server, transactionId, 180)
  answer(server, request, 200, { body: calleeSdp })
  const dialog = dialogIdOf(request)
  server.command(`sip||${dialog}\r\n${sip('ACK sip:bob@192.0.2.20 SIP/2.0', [])}`)
  server.takeSent()
  respond(server, transactionId, 200)
  const toTag = tagIn(header(server.takeSent().at(-1)?.text ?? '', 'To'))
  server.receive(of('ACK', 1, toTag))
  if (isHungUp) {
    server.takeDelivered()
    server.receive(of('BYE', 2, toTag))
    respond(server, server.takeDelivered()[0]?.transactionId ?? '', 200)
    server.takeSent()
    server.command(`sip||${dialog}\r\n${sip('BYE sip:bob@192.0.2.20 SIP/2.0', [])}`)
    answer(server, server.takeSent()[0]?.text ?? '', 200)
  }
  server.takeSent()
  server.takeDelivered()
  server.details.length = 0
  server.advance(MS_PER_CALL)
}
