/** The state of a carrier as an operator reads it: its colour, its reason, and what to do. */
import { expect, test } from 'vitest'
import type { Carrier } from '../../../../../control/console/web/api/views.ts'
import { carrierState } from '../../../../../control/console/web/screens/carrier-state.ts'

const at = '2026-01-01T00:00:00.000Z'

type Probe = Carrier['gateways'][number]['status']

const probe = (status: number, reason: string): Probe => ({
  state: status === 200 ? 'active' : 'inactive',
  latency_ms: null,
  last_probe: { at, status, reason },
  probes: { sent: 1, answered: 0, failed: 1 },
})

const gateway = (status: Probe): Carrier['gateways'][number] => ({
  id: 1,
  host: '192.0.2.7',
  port: 5060,
  transport: 'udp',
  netmask: 32,
  inbound: true,
  outbound: true,
  priority: 10,
  weight: 100,
  status,
})

type Known = Parameters<typeof carrierState>[0]

const carrier = (given: Partial<Known> = {}): Known => ({
  is_active: true,
  registration: null,
  max_calls: 0,
  gateways: [gateway(probe(200, 'OK'))],
  status: { is_usable: true, active_calls: 0, registration: null },
  ...given,
})

const refused = (status: number, reason: string): Known =>
  carrier({
    registration: 'failed',
    status: {
      is_usable: false,
      active_calls: 0,
      registration: {
        registrar: 'sip:192.0.2.7',
        expires_at: null,
        next_attempt_at: null,
        last_answer: { at, status, reason },
      },
    },
  })

test.each([
  [401, 'Unauthorized', /password is wrong/],
  [407, 'Proxy Authentication Required', /password is wrong/],
  [403, 'Forbidden', /refuses this account/],
  [404, 'Not Found', /does not know this user/],
  [423, 'Interval Too Brief', /longer registrations/],
  [503, 'Service Unavailable', /out of order/],
  [480, 'Temporarily Unavailable', /out of order/],
  [0, 'no response', /does not answer.*firewall/],
  [488, 'Not Acceptable Here', /Ask the carrier/],
] as const)('a registration that is answered %i %s says what to do', (status, reason, advice) => {
  const state = carrierState(refused(status, reason))
  expect(state).toMatchObject({ tone: 'bad', advice: expect.stringMatching(advice) })
  expect(state.text).toBe(
    status === 0 ? 'registration failed: no answer' : `registration failed: ${status} ${reason}`,
  )
})

test('a carrier that takes calls is good, and nothing is to be done', () => {
  expect(carrierState(carrier())).toEqual({ tone: 'good', text: 'usable' })
})

test('gateways that do not answer are told, all of them in red, some of them as a warning', () => {
  const silent = gateway(probe(0, 'no response'))
  expect(carrierState(carrier({ gateways: [silent] }))).toMatchObject({
    tone: 'bad',
    text: 'no gateway answers',
    advice: expect.stringContaining('192.0.2.7:5060 does not answer OPTIONS'),
  })
  const some = carrier({ gateways: [gateway(probe(200, 'OK')), gateway(probe(403, 'Forbidden'))] })
  expect(carrierState(some)).toMatchObject({
    tone: 'warn',
    text: '1 of 2 gateways answer',
    advice: expect.stringContaining('403 Forbidden'),
  })
})

test('switched off, full and registering carriers say so', () => {
  expect(carrierState(carrier({ is_active: false }))).toMatchObject({ text: 'inactive' })
  expect(carrierState(carrier({ registration: 'registering' }))).toMatchObject({ tone: 'warn' })
  const full = { is_usable: true, active_calls: 30, registration: null }
  expect(carrierState(carrier({ max_calls: 30, status: full }))).toMatchObject({
    tone: 'warn',
    text: 'full',
  })
})
