/**
 * One simulated world: two stacks, some calls between them, and what must hold when all is quiet.
 */
import { seededRandom } from '../support/seeded-random.ts'
import { Party } from './party.ts'
import { VirtualNetwork } from './virtual-network.ts'
import { VirtualStreams } from './virtual-streams.ts'

const callsPerWorld = 3

export interface World {
  /** The faults; none: everything that must hold does. */
  readonly complaints: readonly string[]
  /** Milliseconds of protocol. */
  readonly virtualMs: number
  /** Calls that were answered, as the callee saw it. */
  readonly answered: number
}

/** Everything in it follows from the seed. */
export function simulate(seed: number, transport: 'udp' | 'tcp' = 'udp'): World {
  const random = seededRandom(seed)
  const weather = {
    loss: random() * 0.3,
    doubling: random() * 0.3,
    maxDelayMs: random() * 800,
    diesAfterMs: random() < 0.25 ? random() * 40_000 : Infinity,
  }
  const network = new VirtualNetwork(random, weather)
  const streams = transport === 'tcp' ? streamsOver(network) : undefined
  const alice = new Party('10.0.0.1', network, streams)
  const bob = new Party('10.0.0.2', network, streams)
  alice.meet(bob)
  bob.meet(alice)
  const start = network.now
  for (let call = 0; call < callsPerWorld; call++)
    network.after(random() * 2_000, () => alice.call())
  network.runUntilQuiet()
  return {
    complaints: [
      ...complaintsOf('alice', alice),
      ...complaintsOf('bob', bob),
      ...disagreements(
        alice,
        bob,
        transport === 'udp' && weather.diesAfterMs === Infinity && weather.loss < 0.2,
      ),
    ],
    virtualMs: network.now - start,
    answered: bob.views.size,
  }
}

/** The faults that only a look at both sides shows. `isFair`: one of ten copies gets through. */
function disagreements(caller: Party, callee: Party, isFair: boolean): string[] {
  const complaints: string[] = []
  for (const dialogId of caller.views.keys())
    if (callee.described.has(dialogId) && !caller.heardDescription.has(dialogId))
      complaints.push(`the answer came before what had to come first in ${dialogId}`)
  if (isFair && callee.unheard > 0) complaints.push('a reliable response was not repeated')
  for (const dialogId of callee.unacknowledged)
    if (isFair && caller.acknowledged.has(dialogId))
      complaints.push(`the ACK in ${dialogId} was not repeated for each copy of the answer`)
  return complaints
}

function streamsOver(network: VirtualNetwork): VirtualStreams {
  const { random } = network
  return new VirtualStreams(network, {
    refused: random() * 0.2,
    broken: random() * 0.8,
    maxDelayMs: random() * 800,
    longestLifeMs: random() * 40_000,
  })
}

function complaintsOf(name: string, party: Party): string[] {
  const complaints = party.complaints.map((complaint) => `${name}: ${complaint}`)
  for (const [transactionId, finals] of party.finals)
    if (finals !== 1) complaints.push(`${name}: ${finals} final responses to ${transactionId}`)
  for (const [dialogId, view] of party.views)
    if (view !== 'over') complaints.push(`${name}: still talking in ${dialogId}`)
  for (const [table, size] of Object.entries(party.core.stats()))
    if (size !== (table === 'applications' ? 1 : 0))
      complaints.push(`${name}: ${size} left in ${table}`)
  return complaints
}
