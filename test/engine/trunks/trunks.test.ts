import { expect, test } from 'vitest'
import type { CarrierRecord } from '../../../engine/routing/routing-records.ts'
import type { RegisterRequest } from '../../../engine/trunks/carrier-registration.ts'
import { Trunks } from '../../../engine/trunks/trunks.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { sampleCarrier, sampleGateway } from '../routing/samples.ts'
import type { ProbeResult } from '../../../engine/dispatcher/probe-loop.ts'

const registering = (carrierId: number, parts: Partial<CarrierRecord> = {}): CarrierRecord =>
  sampleCarrier(carrierId, {
    auth: {
      type: 'register',
      username: `user${carrierId}`,
      password: 'secret',
      realm: null,
      fromUser: null,
      fromDomain: 'acme.example',
      expiresSeconds: 600,
    },
    ...parts,
  })

function start() {
  const time = new ManualTime(0)
  const sent: RegisterRequest[] = []
  const probed: string[] = []
  const logged: string[] = []
  const answers = {
    probe: { kind: 'answered', status: 200, reason: 'OK' } as ProbeResult,
    register: true,
  }
  const trunks = new Trunks({
    now: time.now,
    schedule: time.schedule,
    random: () => 0.5,
    newCallId: () => 'c',
    intervalMs: 2_000,
    failuresToProbing: 3,
    successesToActive: 3,
    sendProbe: (destination, _timeoutMs, done) => {
      probed.push(destination)
      const { probe } = answers
      queueMicrotask(() => done(probe))
    },
    send: (request) => {
      sent.push(request)
      if (!answers.register) return new Promise(() => undefined)
      return Promise.resolve({ kind: 'answered', status: 200, reason: 'OK', headers: {} })
    },
    log: (_level, message, fields) => void logged.push(`${message} ${String(fields?.['carrier'])}`),
  })
  const pass = async (seconds: number): Promise<void> => {
    for (let step = 0; step < seconds * 4; step += 1) {
      time.advance(250)
      for (let turn = 0; turn < 4; turn += 1) await Promise.resolve()
    }
  }
  return { time, sent, probed, logged, answers, trunks, pass }
}

test('only gateways to which calls may go are probed, at the pace of the setting', async () => {
  const { trunks, probed, pass } = start()
  trunks.watch([
    sampleCarrier(1),
    sampleCarrier(2, { direction: 'in' }),
    sampleCarrier(3, { isActive: false }),
    sampleCarrier(4, { gateways: [sampleGateway(4, { isOutbound: false })] }),
    sampleCarrier(5, { gateways: [sampleGateway(5, { port: 0, transport: 'tcp' })] }),
  ])
  trunks.start()
  await pass(10)
  expect(new Set(probed)).toEqual(
    new Set(['sip:203.0.113.1:5060;transport=udp', 'sip:203.0.113.5:5060;transport=tcp']),
  )
  expect(probed).toHaveLength(10)
  expect(trunks.gatewayStatus(2)).toBeUndefined()
  expect(trunks.reachability(2)).toBe('up')
})

test('a gateway that fell silent is down until it answers again', async () => {
  const { trunks, answers, logged, pass } = start()
  trunks.watch([sampleCarrier(1)])
  trunks.start()
  await pass(4)
  expect(trunks.reachability(1)).toBe('up')
  answers.probe = { kind: 'silence' }
  await pass(10)
  expect(trunks.reachability(1)).toBe('down')
  expect(trunks.gatewayStatus(1)).toMatchObject({
    state: 'probing',
    lastProbe: { status: 0, reason: 'no answer' },
  })
  answers.probe = { kind: 'answered', status: 403, reason: 'Forbidden' }
  await pass(10)
  expect(trunks.reachability(1)).toBe('up')
  expect(logged).toEqual(['gateway is probing carrier 1', 'gateway is active carrier 1'])
})

test('a gateway that never answers probes is unproven, not down', async () => {
  const { trunks, answers, pass } = start()
  answers.probe = { kind: 'silence' }
  trunks.watch([sampleCarrier(1)])
  trunks.start()
  await pass(20)
  expect(trunks.reachability(1)).toBe('unproven')
})

test.each([408, 500, 503])('a gateway that answers %i cannot serve', async (status) => {
  const { trunks, answers, pass } = start()
  answers.probe = { kind: 'answered', status, reason: '' }
  trunks.watch([sampleCarrier(1)])
  trunks.start()
  await pass(10)
  expect(trunks.reachability(1)).toBe('down')
})

test('a carrier that wants it is registered with, by its preferred gateway first', async () => {
  const { trunks, sent, pass } = start()
  const gateways = [
    sampleGateway(1, { priority: 20 }),
    sampleGateway(2, { isOutbound: false }),
    sampleGateway(3),
  ]
  trunks.watch([registering(1, { gateways }), sampleCarrier(9)])
  expect(sent).toEqual([])
  trunks.start()
  await pass(1)
  expect(sent).toMatchObject([
    {
      registrar: 'sip:203.0.113.3:5060;transport=udp',
      username: 'user1',
      domain: 'acme.example',
      expiresSeconds: 600,
    },
  ])
  expect(trunks.registrationOf(1)?.state).toBe('registered')
  expect(trunks.registrationOf(9)).toBeUndefined()
  expect(trunks.telemetry()).toEqual({ carrier_registrations: 1, carrier_registrations_failed: 0 })
})

test('a change of something else leaves a registration alone; new credentials make a new one', async () => {
  const { trunks, sent, pass } = start()
  trunks.watch([registering(1)])
  trunks.start()
  await pass(1)
  trunks.watch([registering(1, { maxCalls: 5 })])
  await pass(1)
  expect(sent).toHaveLength(1)
  const { auth } = registering(1)
  trunks.watch([registering(1, { auth: { ...auth, password: 'new' } })])
  await pass(1)
  expect(sent.map(({ password, expiresSeconds }) => [password, expiresSeconds])).toEqual([
    ['secret', 600],
    ['secret', 0],
    ['new', 600],
  ])
})

test('a carrier that is switched off is told so, and nothing is kept of it', async () => {
  const { trunks, sent, pass } = start()
  trunks.watch([registering(1)])
  trunks.start()
  await pass(1)
  trunks.watch([registering(1, { isActive: false })])
  await pass(1)
  expect(sent.at(-1)?.expiresSeconds).toBe(0)
  expect(trunks.registrationOf(1)).toBeUndefined()
})

test('the end waits for carriers, but not for long, and leaves no timer', async () => {
  const { time, trunks, sent, answers, pass } = start()
  trunks.watch([registering(1)])
  trunks.start()
  await pass(1)
  answers.register = false
  let isOver = false
  void trunks.stop().then(() => (isOver = true))
  await pass(0.5)
  expect(isOver).toBe(false)
  await pass(1)
  expect(isOver).toBe(true)
  expect(sent.at(-1)?.expiresSeconds).toBe(0)
  expect(time.waiting).toBe(0)
})
