/** Kamailio, the proxy that most SIP networks are made of: before Tollgate, and as its node. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Kamailio } from '../support/kamailio.ts'
import { callWith, SippNode, type SippResult } from '../support/sipp.ts'
import { watchedNodes } from '../support/waiting.ts'
import { attemptsOf, cents, expectPaid, shareProgram, type SharedCase } from '../sipp/call-case.ts'

const clean = { exitCode: 0, errors: '' }

/** They end after the program, which hangs up what goes on: `shareProgram` comes later. */
const running: { stop(): Promise<unknown> }[] = []

afterAll(async () => {
  for (const each of running.toReversed()) await each.stop()
})

async function startKamailio(port: number, transport: Transport): Promise<Kamailio> {
  const kamailio = await Kamailio.start({ nextHop: `sip:127.0.0.1:${port};transport=${transport}` })
  running.push(kamailio)
  return kamailio
}

type Transport = 'udp' | 'tcp'

/** Kamailio as a node, by the scenario of the SIPp node behind it. */
const behind = new Map<string, Kamailio>()
const scenarios = {
  behindHangsUp: 'hangs-up',
  stops: 'answers',
} as const

beforeAll(async () => {
  for (const [name, scenario] of Object.entries(scenarios)) {
    const node = await SippNode.start(`nodes/${scenario}.xml`)
    running.push(node)
    behind.set(name, await startKamailio(node.port, 'udp'))
  }
})

const isBehind = (name: keyof typeof scenarios) => ({
  nodes: [],
  ports: () => [behind.get(name)?.port ?? 0],
})

const caseOf = shareProgram({
  udp: { nodes: ['answers'] },
  tcp: { nodes: ['answers'] },
  rings: { nodes: ['rings'] },
  poor: { nodes: ['rings'], customer: { balance: '0' } },
  many: { nodes: ['answers'], customer: { balance: '1000.00' } },
  behindHangsUp: isBehind('behindHangsUp'),
})

const stops = shareProgram({ stops: { ...isBehind('stops'), nodes: ['answers'] } }, watchedNodes)

/** The proxies in front of Tollgate. */
const front = new Map<Transport, Kamailio>()

beforeAll(async () => {
  const { sipPort } = caseOf('udp').tollgate
  for (const transport of ['udp', 'tcp'] as const)
    front.set(transport, await startKamailio(sipPort, transport))
})

/** Calls Tollgate itself. */
const call = ({ tollgate, options }: SharedCase, scenario: string): Promise<SippResult> =>
  callWith(`inbound/${scenario}.xml`, tollgate.sipPort, options)

const callThrough = (
  { options }: SharedCase,
  scenario: string,
  transport: Transport = 'udp',
  load: object = {},
): Promise<SippResult> =>
  callWith(`inbound/${scenario}.xml`, front.get(transport)?.port ?? 0, { ...options, ...load })

test.each(['udp', 'tcp'] as const)(
  'a call through a record-routing proxy in front of us, by %s, ends in order and is charged',
  async (transport) => {
    const own = caseOf(transport)
    expect(await callThrough(own, 'answered', transport)).toEqual(clean)
    const [record] = await own.waitForCalls(1)
    expect(record).toMatchObject({ hangup_by: 'caller', node: own.uris[0] })
    expectPaid(record, 1)
    expect(own.tollgate.faults).toEqual([])
  },
)

test('a caller behind the proxy cancels, and receives our rejections', async () => {
  const [own, poor] = [caseOf('rings'), caseOf('poor')]
  expect(await callThrough(own, 'cancels-while-ringing')).toEqual(clean)
  expect(await callThrough(poor, 'no-funds')).toEqual(clean)
  expect(await own.waitForCalls(1)).toMatchObject([{ sip_code: 487 }])
  expect(await poor.waitForCalls(1)).toMatchObject([{ sip_code: 402 }])
})

test('thirty calls at once through the proxy: each ends and is charged once', async () => {
  const own = caseOf('many')
  expect(await callThrough(own, 'answered', 'udp', { calls: 30, rate: 30 })).toEqual(clean)
  const calls = await own.waitForCalls(30)
  const seconds = calls.reduce((sum, { billsec }) => sum + billsec, 0)
  expect(own.wallet()).toMatchObject({ balance: cents(100_000 - seconds), debits: 30 })
})

test('a node that is a proxy: BYE comes to us through it', async () => {
  const own = caseOf('behindHangsUp')
  expect(await call(own, 'caller-is-hung-up')).toEqual(clean)
  const [record] = await own.waitForCalls(1)
  expect(record).toMatchObject({ disposition: 'ANSWERED', hangup_by: 'callee' })
})

test('when the proxy behind us is stopped the next node takes the call', async () => {
  const own = stops('stops')
  expect(await call(own, 'answered')).toEqual(clean)
  await behind.get('stops')?.stop()
  expect(await call(own, 'answered')).toEqual(clean)
  const calls = await own.waitForCalls(2)
  expect(calls.map(({ node }) => node)).toEqual(own.uris)
  expect(attemptsOf(calls[1] ?? { attempts: '[]' }).at(-1)).toBe(200)
})
