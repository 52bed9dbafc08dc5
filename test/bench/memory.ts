import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { answer, calleeSdp, dialogIdOf, invite } from '../support/callee.ts'
import { invited, respond } from '../support/caller.ts'
import { header, requestOf, sdp, sip, tagIn, VirtualServer } from '../support/sip-core.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { residentMegabytes } from './load/process-cpu.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'heap that the SIP core holds per call; resident memory of the program at rest and under calls; arguments: rate=700 calls=100000 more=50000, calls=0 for the core alone'

const calls = 5_000

export async function run(words: readonly string[] = []): Promise<void> {
  const usual = { rate: 700, calls: 100_000, more: 50_000 }
  const { rate, calls: first, more } = numbersOf(words, usual)
  ofCore()
  if (first > 0) await ofProgram(rate, [first, more])
}

/** How long the program rests before it is looked at. Milliseconds. */
const restMs = 10_000

async function ofProgram(rate: number, rounds: readonly number[]): Promise<void> {
  const nodes = [await startNode(), await startNode(), await startNode()]
  const tollgate = await TollgateProcess.start(oneCustomer(nodes.map(({ port }) => port)), {
    LOG_LEVEL: 'warn',
  })
  const print = (what: string): void =>
    console.log(`${residentMegabytes(tollgate.pid).toFixed(0).padStart(8)}  MB resident ${what}`)
  try {
    await new Promise((resolve) => setTimeout(resolve, restMs))
    print('at rest after the start')
    for (const count of rounds) {
      const { succeeded } = await placeCalls(tollgate.sipPort, rate, count, caller)
      print(`after ${succeeded} of ${count} calls at ${rate}/s`)
    }
  } finally {
    await tollgate.stop()
    for (const node of nodes) await node.stop()
  }
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
