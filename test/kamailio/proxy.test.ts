/** Kamailio, the proxy that most SIP networks are made of: before Tollgate, and as its node. */
import { expect, onTestFinished, test } from 'vitest'
import { Kamailio } from '../support/kamailio.ts'
import { callWith, SippNode } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientNodes, watchedNodes } from '../support/waiting.ts'
import {
  attemptsOf,
  cents,
  expectPaid,
  paying,
  seedFor,
  startCase,
  type Case,
} from '../sipp/call-case.ts'

const clean = { exitCode: 0, errors: '' }
const keys = { caller: paying }

async function proxyTo(port: number, transport = 'udp'): Promise<Kamailio> {
  const kamailio = await Kamailio.start({ nextHop: `sip:127.0.0.1:${port};transport=${transport}` })
  onTestFinished(() => kamailio.stop())
  return kamailio
}

/** Tollgate with a node behind it and Kamailio in front. */
async function startInFront(
  node: string,
  transport: 'udp' | 'tcp',
  balance = '10.00',
): Promise<Case & { front: Kamailio }> {
  const world = await startCase({ nodes: [node], balance })
  return { ...world, front: await proxyTo(world.tollgate.sipPort, transport) }
}

/** Kamailio as the first node, a SIPp node behind it, and perhaps another one beside it. */
async function startBehind(
  node: string,
  other?: string,
  environment: Record<string, string> = patientNodes,
) {
  const behind = await SippNode.start(`nodes/${node}.xml`)
  onTestFinished(async () => void (await behind.stop()))
  const kamailio = await proxyTo(behind.port)
  const beside = other === undefined ? undefined : await SippNode.start(`nodes/${other}.xml`)
  onTestFinished(async () => void (await beside?.stop()))
  const ports = [kamailio.port, ...(beside ? [beside.port] : [])]
  const tollgate = await TollgateProcess.start(seedFor(ports), environment)
  onTestFinished(() => tollgate.stop())
  return { tollgate, kamailio, uris: ports.map((port) => `sip:127.0.0.1:${port};transport=udp`) }
}

test.each(['udp', 'tcp'] as const)(
  'a call through a record-routing proxy in front of us, by %s, ends in order and is charged',
  async (transport) => {
    const { tollgate, front, uris } = await startInFront('answers', transport)
    expect(await callWith('inbound/answered.xml', front.port, { keys })).toEqual(clean)
    const [call] = await tollgate.waitForCalls(1)
    expect(call).toMatchObject({ hangup_by: 'caller', node: uris[0] })
    expectPaid(call, 1)
    expect(tollgate.faults).toEqual([])
  },
)

test('BYE from behind us finds its way through the proxy in front to the caller', async () => {
  const { tollgate, front } = await startInFront('hangs-up', 'udp')
  expect(await callWith('inbound/caller-is-hung-up.xml', front.port, { keys })).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'ANSWERED', hangup_by: 'callee' })
})

test('a caller behind the proxy cancels, and receives our rejections', async () => {
  const { tollgate, front } = await startInFront('rings', 'udp')
  expect(await callWith('inbound/cancels-while-ringing.xml', front.port, { keys })).toEqual(clean)
  expect(
    await callWith('inbound/no-funds.xml', front.port, { keys: { caller: '15550002222' } }),
  ).toEqual(clean)
  const calls = await tollgate.waitForCalls(2)
  // The record of the first is written when its CANCEL has been through.
  expect(new Set(calls.map(({ sip_code }) => sip_code))).toEqual(new Set([402, 487]))
})

test('a hundred calls at once through the proxy: each ends and is charged once', async () => {
  const { tollgate, front } = await startInFront('answers', 'udp', '1000.00')
  const load = { keys, calls: 100, rate: 50 }
  expect(await callWith('inbound/answered.xml', front.port, load)).toEqual(clean)
  const calls = await tollgate.waitForCalls(100)
  expect(calls.filter(({ disposition }) => disposition === 'ANSWERED')).toHaveLength(100)
  // On a busy machine a call may take longer than its second.
  const seconds = calls.reduce((sum, { billsec }) => sum + billsec, 0)
  expect(seconds).toBeGreaterThanOrEqual(100)
  const balance = cents(100_000 - seconds)
  expect(tollgate.wallet('paying')).toMatchObject({ balance, debits: 100 })
})

test('a node that is a proxy: our ACK and BYE follow its Record-Route', async () => {
  const { tollgate, uris } = await startBehind('answers')
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, { keys })).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'ANSWERED', hangup_by: 'caller', node: uris[0] })
})

test('a node that is a proxy: BYE comes to us through it', async () => {
  const { tollgate } = await startBehind('hangs-up')
  expect(await callWith('inbound/caller-is-hung-up.xml', tollgate.sipPort, { keys })).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'ANSWERED', hangup_by: 'callee' })
})

test('a CANCEL passes through the proxy behind us to the phone that rings', async () => {
  const { tollgate } = await startBehind('rings')
  const cancelled = await callWith('inbound/cancels-while-ringing.xml', tollgate.sipPort, { keys })
  expect(cancelled).toEqual(clean)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ sip_code: 487, cost_micros: 0 })
})

test('when the proxy behind us is stopped the next node takes the call', async () => {
  const { tollgate, kamailio, uris } = await startBehind('answers', 'answers', watchedNodes)
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, { keys })).toEqual(clean)
  await kamailio.stop()
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, { keys })).toEqual(clean)
  const calls = await tollgate.waitForCalls(2)
  expect(calls.map(({ node }) => node)).toEqual(uris)
  expect(attemptsOf(calls[1] ?? { attempts: '[]' }).at(-1)).toBe(200)
})
