/**
 * One case: nodes, a started Tollgate, SIPp callers, and what an operator sees afterwards in
 * records and wallet. Everything is stopped again, however the case ends.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { type callWith, SippNode, type SippResult } from '../support/sipp.ts'
import { TollgateProcess, type StoredCall } from '../support/tollgate-process.ts'
import { eventually, patientInstances } from '../support/waiting.ts'

/** One caller number per customer; only the first has money. */
export const paying = '15550001111'
export const poor = '15550002222'
const almostBroke = '15550003333'

export interface Case {
  readonly tollgate: TollgateProcess
  readonly nodes: readonly SippNode[]
  /** The SIP URIs by which records name the nodes. */
  readonly uris: readonly string[]
}

interface CaseOptions {
  /** Scenario of each node, in order of priority. */
  readonly nodes: readonly string[]
  /** The balance of the paying customer. Default 10.00. */
  readonly balance?: string
  /** Beside `patientInstances`; `watchedNodes` where a node falls silent. */
  readonly environment?: Record<string, string>
  /** Beside the usual ones. */
  readonly customers?: readonly object[]
  /** Sections of the seed file in place of the usual ones, by the ports of the nodes. */
  readonly seed?: (ports: readonly number[]) => Readonly<Record<string, readonly object[]>>
}

export async function startCase(options: CaseOptions): Promise<Case> {
  const nodes: SippNode[] = []
  onTestFinished(async () => {
    for (const node of nodes) await node.stop()
  })
  for (const scenario of options.nodes) nodes.push(await SippNode.start(`nodes/${scenario}.xml`))
  const ports = nodes.map(({ port }) => port)
  const environment = { ...patientInstances, ...options.environment }
  const seed = { ...seedFor(ports, options), ...options.seed?.(ports) }
  const tollgate = await TollgateProcess.start(seed, environment)
  onTestFinished(() => tollgate.stop())
  return { tollgate, nodes, uris: ports.map(uriOf) }
}

const uriOf = (port: number): string => `sip:127.0.0.1:${port};transport=udp`

/** 0.60 a minute, one cent a second, charged by the second. */
export function seedFor(ports: readonly number[], options: Omit<CaseOptions, 'nodes'> = {}) {
  const { balance = '10.00' } = options
  return {
    rate_plans: [{ name: 'retail', currency: 'USD' }],
    rates: [{ rate_plan: 'retail', prefix: '1', rate_per_minute: '0.60' }],
    customers: [
      { name: 'paying', rate_plan: 'retail', numbers: [paying], balance },
      { name: 'poor', rate_plan: 'retail', numbers: [poor] },
      { name: 'almost-broke', rate_plan: 'retail', numbers: [almostBroke], balance: '0.02' },
      ...(options.customers ?? []),
    ],
    dispatcher: [{ endpoint_name: 'pbx', set_id: 1, ...setOf(ports) }],
  }
}

const setOf = (ports: readonly number[]) => ({
  algorithm: 8,
  nodes: ports.map((port, index) => ({
    host: '127.0.0.1',
    internal_port: port,
    priority: 10 + index,
  })),
})

/** The things that a case has of its own in a program that it shares with others. */
export interface SharedCase extends Case, Judged, Talking {
  /**
   * The options that its calls are placed with: the number that leads to its nodes, and that of its
   * customer.
   */
  readonly options: SippOptions
  readonly customer: string
  /** The wallet of its customer. */
  wallet(): ReturnType<TollgateProcess['wallet']>
}

/** The stored rows, as `TollgateProcess` tells it; of a case, its own calls. */
export interface Judged {
  calls(): StoredCall[]
  waitForCalls(count: number): Promise<StoredCall[]>
}

interface SharedOptions extends Pick<CaseOptions, 'nodes'> {
  /** The fields that its customer has beside name, number, rate plan and a balance of 10.00. */
  readonly customer?: object
  /** How its nodes are probed, if not as `environment` says. */
  readonly probe?: object
  /**
   * For a case that stops or freezes nodes, or asks what they complained of: the same scenario is
   * otherwise one node for all.
   */
  readonly ownNodes?: boolean
  /** Ports of nodes that the file starts itself, in a `beforeAll` of before; they come first. */
  readonly ports?: () => readonly number[]
}

type SippOptions = Parameters<typeof callWith>[2] & object

/**
 * One program for the cases of a file or a `describe`: a start takes longer than a call. Each case
 * has a number that is called, a customer with a wallet, and a set of nodes of its own, and its
 * Call-IDs end with its tag, so that no case sees what another did. `environment` is beside
 * `patientInstances`.
 */
export function shareProgram<Name extends string>(
  cases: Readonly<Record<Name, SharedOptions>>,
  environment?: Record<string, string>,
): (name: Name) => SharedCase {
  const names = Object.keys(cases)
  const all = Object.values<SharedOptions>(cases)
  const nodes = new SharedNodes()
  let tollgate: TollgateProcess | undefined
  const sets: SippNode[][] = []
  const ports: number[][] = []
  beforeAll(async () => {
    for (const [index, options] of all.entries()) {
      const set = await nodes.of(options, index)
      sets.push(set)
      ports.push([...(options.ports?.() ?? []), ...set.map(({ port }) => port)])
    }
    const settings = { ...patientInstances, ...environment }
    tollgate = await TollgateProcess.start(sharedSeed(all, ports), settings)
  })
  // Nodes end last: the program may yet hang up.
  afterAll(async () => {
    await tollgate?.stop()
    await nodes.stop()
  })
  return (name) => {
    const started = tollgate
    if (started === undefined) throw new Error('the program has not started')
    const index = names.indexOf(name)
    const { customer, caller, number } = identityOf(index)
    return {
      tollgate: started,
      customer,
      nodes: sets[index] ?? [],
      uris: (ports[index] ?? []).map(uriOf),
      options: { service: number, keys: { caller }, ...taggedCalls(customer) },
      ...ofTag(started, customer),
      wallet: () => started.wallet(customer),
    }
  }
}

/** For SIPp: the Call-IDs end with this tag. */
export const taggedCalls = (tag: string) => ({
  extra: ['-cid_str', `%u-%p@${tag}`],
})

/** Calls whose Call-IDs end with this tag. */
export const ofTag = (tollgate: TollgateProcess, tag: string): Judged & Talking => {
  const isOwn = (call: { readonly call_id: string }): boolean => call.call_id.endsWith(`@${tag}`)
  const calls = (): StoredCall[] => tollgate.calls().filter(isOwn)
  return {
    calls,
    openCalls: () => tollgate.openCalls().filter(isOwn),
    waitForCalls: (count) =>
      eventually(() => {
        const stored = calls()
        if (stored.length < count) throw new Error(`${stored.length} of ${count} calls are stored`)
        return stored
      }),
  }
}

/** Digits beside each other, so that no number is the beginning of another. */
const identityOf = (index: number) => ({
  customer: `case-${index}`,
  caller: String(15550001000 + index),
  number: String(18005550000 + index),
})

class SharedNodes {
  readonly #nodes = new Map<string, SippNode>()

  async of({ nodes, ownNodes }: SharedOptions, index: number): Promise<SippNode[]> {
    const found: SippNode[] = []
    for (const [place, scenario] of nodes.entries()) {
      const same = nodes.slice(0, place).filter((other) => other === scenario).length
      const key = ownNodes === true ? `case ${index} ${place}` : `${scenario} ${same}`
      const node = this.#nodes.get(key) ?? (await SippNode.start(`nodes/${scenario}.xml`))
      this.#nodes.set(key, node)
      found.push(node)
    }
    return found
  }

  async stop(): Promise<void> {
    for (const node of this.#nodes.values()) await node.stop()
  }
}

function sharedSeed(all: readonly SharedOptions[], ports: readonly (readonly number[])[]): object {
  return {
    rate_plans: [{ name: 'retail', currency: 'USD' }],
    rates: [{ rate_plan: 'retail', prefix: '1', rate_per_minute: '0.60' }],
    customers: all.map(({ customer }, index) => {
      const { customer: name, caller } = identityOf(index)
      return { name, rate_plan: 'retail', numbers: [caller], balance: '10.00', ...customer }
    }),
    dispatcher: all.map((options, index) => ({
      ...setOf(ports[index] ?? []),
      endpoint_name: identityOf(index).customer,
      set_id: index + 1,
      ...(options.probe !== undefined && { probe: options.probe }),
    })),
    inbound_routes: all.map((_, index) => {
      const { customer: name, number: prefix } = identityOf(index)
      return { name, prefix, set_id: index + 1 }
    }),
  }
}

export interface Talking {
  openCalls(): readonly { readonly call_uuid: string }[]
}

/** Waits until one call is answered and goes on. */
const untilTalking = (source: Talking): Promise<void> =>
  eventually(() => expect(source.openCalls()).toHaveLength(1))

/**
 * Places a call (`inbound/caller-is-hung-up.xml`) that goes on, however slow the machine is, until
 * the returned function hangs it up from the API.
 */
export async function holdCall(
  tollgate: TollgateProcess,
  place: () => Promise<SippResult>,
  source: Talking = tollgate,
): Promise<() => Promise<void>> {
  const hangUp = await openHangUp(tollgate)
  const talking = place()
  await untilTalking(source)
  const calls = source.openCalls()
  return async () => {
    await hangUp(calls)
    expect(await talking).toEqual({ exitCode: 0, errors: '' })
  }
}

/** The calls that are answered and go on. */
export const openCalls = (tollgate: TollgateProcess): readonly { readonly call_uuid: string }[] =>
  tollgate.openCalls()

/** Hangs up these calls by the API. */
export async function openHangUp(
  tollgate: TollgateProcess,
): Promise<(calls: readonly { readonly call_uuid: string }[]) => Promise<void>> {
  const name = `hang-up ${randomUUID()}`
  const token = await tollgate.createKey('--name', name, '--kind', 'pbx', '--scopes', '*')
  return async (calls) => {
    for (const call of calls) {
      const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/telephony/hangup`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ call_uuid: call.call_uuid }),
      })
      expect(answer.status).toBe(200)
    }
  }
}

/** Statuses of a record's attempts, in order. */
export const attemptsOf = (call: { readonly attempts: string }): number[] =>
  (JSON.parse(call.attempts) as { status: number }[]).map(({ status }) => status)

export const cents = (count: number): number => count * 10_000

/**
 * An answered call that lasted so many seconds, or more when the machine stood still, and whose
 * every second is paid: what it cost, in micro-units.
 */
export function expectPaid(call: StoredCall | undefined, atLeastSeconds: number): number {
  const { billsec = 0, cost_micros: cost = 0 } = call ?? {}
  expect(call).toMatchObject({ disposition: 'ANSWERED', cost_micros: cents(billsec) })
  expect(billsec).toBeGreaterThanOrEqual(atLeastSeconds)
  expect(billsec).toBeLessThan(atLeastSeconds + 60)
  return cost
}
