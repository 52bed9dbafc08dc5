/**
 * The time that Tollgate, and Kamailio with a charging server, add from INVITE to 200. SIPp places
 * the load. Beside it, calls of this process are timed in fine steps: one through the contestant,
 * one straight to a node, in turns. Both wait for the same two processors, so the difference is
 * what the contestant adds. The nodes send 180 and 200 at once: what is between them at the caller
 * is the answer's own part, in Tollgate the journal.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { percentile, spread } from './load/figures.ts'
import { startKamailio, whyNoKamailio } from './load/kamailio.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { type Setup, SetupProbe } from './load/setup-probe.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'how much later a call is answered through Tollgate, and through Kamailio with a charging server, beside a load; ' +
  'arguments: rate=500 seconds=20 turns=5 warmup=30 probes=20 (pairs a second) peer=yes|no'

const usual = { rate: 500, seconds: 20, turns: 5, warmup: 30, probes: 20 }

export async function run(words: readonly string[] = []): Promise<void> {
  const { rate, seconds, turns, warmup, probes: pairs } = numbersOf(words, usual)
  const missing = words.includes('peer=no') ? 'peer=no' : whyNoKamailio('bare')
  if (missing !== undefined) console.log(`  ${missing}: no peer figures`)
  const nodes = [await startNode(), await startNode(), await startNode()]
  const ports = nodes.map(({ port }) => port)
  const tollgate = await TollgateProcess.start(oneCustomer(ports), { LOG_LEVEL: 'warn' })
  const kamailio = missing === undefined ? await startKamailio(ports, 'bare') : undefined
  const contestants = [
    { name: 'tollgate', port: tollgate.sipPort },
    ...(kamailio ? [{ name: 'kamailio', port: kamailio.sipPort }] : []),
  ]
  const direct = ports[0] ?? 0
  try {
    const taken = new Map<string, Delays[]>()
    for (const { port } of contestants) await placeCalls(port, rate, rate * warmup, caller)
    for (let turn = 0; turn < turns; turn += 1)
      for (const { name, port } of turn % 2 === 0 ? contestants : contestants.toReversed()) {
        const delays = await besideLoad(port, direct, { rate, seconds, pairs })
        console.log(`  ${name.padEnd(9)} ${textOf(delays)}`)
        taken.set(name, [...(taken.get(name) ?? []), delays])
      }
    for (const [name, all] of taken)
      for (const [part, of] of Object.entries(parts)) {
        const added = (quantile: number): string =>
          spread(
            all.map((each) => addedBy(each, quantile, of)),
            1,
          )
        console.log(
          `  ${name.padEnd(9)} ${part.padEnd(21)} p50 ${added(0.5)} ms, p99 ${added(0.99)} ms`,
        )
      }
  } finally {
    await kamailio?.stop()
    await tollgate.stop()
    for (const node of nodes) await node.stop()
  }
}

type PartOf = (setup: Setup) => number

const parts: Readonly<Record<string, PartOf>> = {
  adds: ({ answeredMs }) => answeredMs,
  'of it until it rings': ({ ringingMs }) => ringingMs,
  'from there to the 200': ({ answeredMs, ringingMs }) => answeredMs - ringingMs,
}

interface Delays {
  readonly through: readonly Setup[]
  readonly direct: readonly Setup[]
}

async function besideLoad(
  port: number,
  direct: number,
  { rate, seconds, pairs }: { rate: number; seconds: number; pairs: number },
): Promise<Delays> {
  const probe = await SetupProbe.open(caller)
  const through: Promise<Setup>[] = []
  const straight: Promise<Setup>[] = []
  const load = placeCalls(port, rate, rate * seconds, caller)
  await pause(2_000)
  for (let pair = 0; pair < (seconds - 3) * pairs; pair += 1) {
    through.push(probe.place(port))
    await pause(500 / pairs)
    straight.push(probe.place(direct))
    await pause(500 / pairs)
  }
  const delays = { through: await Promise.all(through), direct: await Promise.all(straight) }
  await load
  await pause(500)
  probe.close()
  return delays
}

const addedBy = ({ through, direct }: Delays, quantile: number, of: PartOf): number =>
  percentile(through.map(of), quantile) - percentile(direct.map(of), quantile)

function textOf(delays: Delays): string {
  const [through, direct] = [delays.through, delays.direct].map((all) =>
    all.map(({ answeredMs }) => answeredMs),
  )
  const ms = (all: readonly number[] = [], quantile = 0.5): string =>
    percentile(all, quantile).toFixed(1)
  return (
    `through it p50 ${ms(through)}, p99 ${ms(through, 0.99)}, longest ${ms(through, 0.9999)} ms; ` +
    `straight p50 ${ms(direct)}, p99 ${ms(direct, 0.99)} ms`
  )
}
