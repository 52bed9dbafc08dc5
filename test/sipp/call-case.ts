/**
 * One case: nodes, a started Tollgate, SIPp callers, and what an operator sees afterwards in
 * records and wallet. Everything is stopped again, however the case ends.
 */
import { expect, onTestFinished } from 'vitest'
import { SippNode, type SippResult } from '../support/sipp.ts'
import { TollgateProcess, type StoredCall } from '../support/tollgate-process.ts'
import { eventually, patientNodes } from '../support/waiting.ts'

/** One caller number per customer; only the first has money. */
export const paying = '15550001111'
export const poor = '15550002222'
export const almostBroke = '15550003333'

export interface Case {
  readonly tollgate: TollgateProcess
  readonly nodes: readonly SippNode[]
  /** The SIP URIs by which records name the nodes. */
  readonly uris: readonly string[]
}

interface CaseOptions {
  /** Scenario of each node, in order of priority. */
  readonly nodes: readonly string[]
  readonly algorithm?: number
  readonly weights?: readonly number[]
  /** Of the paying customer. Default 10.00. */
  readonly balance?: string
  /** Beside `patientNodes`; `watchedNodes` where a node falls silent. */
  readonly environment?: Record<string, string>
  /** Beside the usual ones. */
  readonly rates?: readonly object[]
  readonly customers?: readonly object[]
  readonly tenants?: readonly object[]
}

export async function startCase(options: CaseOptions): Promise<Case> {
  const nodes: SippNode[] = []
  onTestFinished(async () => {
    for (const node of nodes) await node.stop()
  })
  for (const scenario of options.nodes) nodes.push(await SippNode.start(`nodes/${scenario}.xml`))
  const ports = nodes.map(({ port }) => port)
  const environment = { ...patientNodes, ...options.environment }
  const tollgate = await TollgateProcess.start(seedFor(ports, options), environment)
  onTestFinished(() => tollgate.stop())
  return { tollgate, nodes, uris: ports.map(uriOf) }
}

const uriOf = (port: number): string => `sip:127.0.0.1:${port};transport=udp`

/** 0.60 a minute, one cent a second, charged by the second. */
export function seedFor(ports: readonly number[], options: Omit<CaseOptions, 'nodes'> = {}) {
  const { balance = '10.00' } = options
  return {
    tenants: options.tenants ?? [],
    rate_plans: [{ name: 'retail', currency: 'USD' }],
    rates: [
      { rate_plan: 'retail', prefix: '1', rate_per_minute: '0.60' },
      ...(options.rates ?? []),
    ],
    customers: [
      { name: 'paying', rate_plan: 'retail', numbers: [paying], balance },
      { name: 'poor', rate_plan: 'retail', numbers: [poor] },
      { name: 'almost-broke', rate_plan: 'retail', numbers: [almostBroke], balance: '0.02' },
      ...(options.customers ?? []),
    ],
    dispatcher: [
      {
        endpoint_name: 'pbx',
        set_id: 1,
        algorithm: options.algorithm ?? 8,
        nodes: ports.map((port, index) => ({
          host: '127.0.0.1',
          internal_port: port,
          priority: 10 + index,
          weight: options.weights?.[index] ?? 100,
        })),
      },
    ],
  }
}

/** Waits until one call is answered and goes on. */
export const untilTalking = (tollgate: TollgateProcess): Promise<void> =>
  eventually(() => expect(openCalls(tollgate)).toHaveLength(1))

/**
 * Places a call (`inbound/caller-is-hung-up.xml`) that goes on, however slow the machine is, until the
 * returned function hangs it up from the API.
 */
export async function holdCall(
  tollgate: TollgateProcess,
  place: () => Promise<SippResult>,
): Promise<() => Promise<void>> {
  const hangUp = await openHangUp(tollgate)
  const talking = place()
  await untilTalking(tollgate)
  const calls = openCalls(tollgate)
  return async () => {
    await hangUp(calls)
    expect(await talking).toEqual({ exitCode: 0, errors: '' })
  }
}

/**
 * The records of two calls that `place` has placed within one second: once more while the machine stood still between
 * them.
 */
export async function atOnce(
  tollgate: TollgateProcess,
  place: () => Promise<unknown>,
): Promise<readonly StoredCall[]> {
  const known = tollgate.calls().length
  for (let placed = 2; placed <= 10; placed += 2) {
    await place()
    const calls = (await tollgate.waitForCalls(known + placed)).slice(-2)
    const starts = calls.map((call) => call.start_stamp)
    if (Math.max(...starts) - Math.min(...starts) < 900) return calls
  }
  throw new Error('the machine stands still between any two calls')
}

/** The calls that are answered and go on. */
export const openCalls = (tollgate: TollgateProcess): readonly { readonly call_uuid: string }[] =>
  tollgate.openCalls()

/** Hangs up these calls by the API. */
export async function openHangUp(
  tollgate: TollgateProcess,
): Promise<(calls: readonly { readonly call_uuid: string }[]) => Promise<void>> {
  const token = await tollgate.createKey('--name', 'hang-up', '--kind', 'pbx', '--scopes', '*')
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
 * An answered call that lasted so many seconds, or more when the machine stood still, and whose every
 * second is paid: what it cost, in micro-units.
 */
export function expectPaid(call: StoredCall | undefined, atLeastSeconds: number): number {
  const { billsec = 0, cost_micros: cost = 0 } = call ?? {}
  expect(call).toMatchObject({ disposition: 'ANSWERED', cost_micros: cents(billsec) })
  expect(billsec).toBeGreaterThanOrEqual(atLeastSeconds)
  expect(billsec).toBeLessThan(atLeastSeconds + 60)
  return cost
}
