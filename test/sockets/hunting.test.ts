/** Rules of stored carriers about their answers, as the peers on the wire see them. */
import { expect, test } from 'vitest'
import { startEngine } from '../support/engine-on-sockets.ts'
import { eventually } from '../support/waiting.ts'

test('the rules of a carrier lead a call on, redirect it, and change what its caller gets', async () => {
  const { peers, ask, records } = await startEngine(
    ['pbx', 'server', 'target', 'other'],
    (ports) => ({
      rate_plans: [{ name: 'retail', currency: 'USD' }],
      rates: [{ rate_plan: 'retail', prefix: '', rate_per_minute: '0.10' }],
      customers: [{ name: 'acme', rate_plan: 'retail', numbers: ['+4930100'], balance: '50' }],
      dispatcher: [
        {
          ...{ endpoint_name: 'pbx', set_id: 1, algorithm: 8 },
          nodes: [{ host: '127.0.0.1', internal_port: ports.pbx }],
        },
      ],
      carriers: [
        {
          ...{ name: 'server', gateways: [{ host: '127.0.0.1', port: ports.server }] },
          hunting: { redirects: 'follow' },
        },
        {
          ...{ name: 'target', gateways: [{ host: '127.0.0.1', port: ports.target }] },
          hunting: { next_on: ['404'] },
        },
        {
          ...{ name: 'other', gateways: [{ host: '127.0.0.1', port: ports.other }] },
          hunting: { answers: [{ match: '486', status: 480, reason: 'Not now' }] },
        },
      ],
      outbound_routes: [
        { name: 'first', prefix: '4940', carrier: 'server', priority: 1 },
        { name: 'second', prefix: '4940', carrier: 'other', priority: 2 },
        { name: 'third', prefix: '4940', carrier: 'target', priority: 3 },
      ],
    }),
  )
  const { pbx, server, target, other } = peers
  ask('pbx', '4940200', '<sip:+4930100@pbx.example>')
  const contact = `Contact: <sip:4940200;npdi@127.0.0.1:${target.port}>;q=0.9`
  server.reply(await server.next('INVITE'), 302, { tag: 'r', headers: [contact] })
  const redirected = await target.next('INVITE')
  expect(redirected.uri).toMatch(/^sip:4940200;npdi@127\.0\.0\.1:\d+;transport=udp;user=phone$/)
  target.reply(redirected, 404, { tag: 't' })
  other.reply(await other.next('INVITE'), 486, { tag: 'o' })
  const answer = await pbx.next((message) => message.status >= 300)
  expect(answer.startLine).toBe('SIP/2.0 480 Not now')
  await eventually(() => expect(records).toHaveLength(1))
  const [record] = records
  expect(record?.attempts.map(({ status }) => status)).toEqual([302, 404, 486])
  expect(record).toMatchObject({ sipCode: 480, disposition: 'BUSY', carrier: 'other' })
})
