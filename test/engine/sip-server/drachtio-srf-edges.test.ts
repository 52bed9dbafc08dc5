/** Inputs at the edge of what the drachtio protocol and SIP allow, seen by an unmodified drachtio-srf. */
import { afterEach, describe, expect, test } from 'vitest'
import { createSipServer } from '../../../engine/sip-server/index.ts'
import { SipPeer } from '../../support/sip-peer.ts'
import { startRig, variants, type Rig } from '../../support/sip-rig.ts'
import { connectInProcess, responseTo, type SrfRequest } from '../../support/srf.ts'

let rig: Rig | undefined
afterEach(async () => {
  await rig?.stop()
  rig = undefined
})

/** An application that answers every MESSAGE with its own body. */
async function echoing(variant: (typeof variants)[number]) {
  const seen: SrfRequest[] = []
  rig = await startRig(variant, (srf) =>
    srf.message((req, res) => {
      seen.push(req)
      res.send(200, { headers: { 'Content-Type': 'text/plain' }, body: req.body })
    }),
  )
  const peer = await rig.peer()
  return { rig, peer, seen, leg: peer.leg(rig.uri('app')) }
}

describe.each(variants)('application by $app, SIP by $sip', (variant) => {
  test('a body crosses unharmed in both directions, whatever it is made of', async () => {
    const { peer, leg } = await echoing(variant)
    for (const body of ['a|b|c', 'grüße 👋', '5#x|ping', '\r\n\r\n', 'x'.repeat(20_000)]) {
      peer.request('MESSAGE', leg, { body })
      expect((await peer.next('200 MESSAGE')).body).toBe(body)
    }
  })

  test('a pipe in Call-ID or tag cannot forge fields of the drachtio protocol', async () => {
    const { peer, seen, leg } = await echoing(variant)
    peer.request('MESSAGE', { ...leg, callId: 'a|b|c' })
    peer.request('MESSAGE', { ...leg, from: '<sip:x@127.0.0.1>;tag=a|b' })
    peer.request('MESSAGE', leg, { body: 'good' })
    await peer.next((message) => message.body === 'good')
    for (const { stackTxnId, stackDialogId } of seen)
      expect(`${stackTxnId}${stackDialogId}`).not.toMatch(/[|]/)
  })

  test('folded lines and compact names reach the application unfolded and in full', async () => {
    const { peer, seen, leg } = await echoing(variant)
    peer.request('MESSAGE', leg, {
      headers: ['s: one', ' two', 'k: 100rel', 'x-Odd-NAME: kept'],
      body: 'hi',
    })
    await peer.next('200 MESSAGE')
    expect(seen[0]?.get('Subject')).toBe('one two')
    expect(seen[0]?.get('Supported')).toBe('100rel')
    expect(seen[0]?.get('X-Odd-Name')).toBe('kept')
  })
})

test.each(['tcp', 'in process'] as const)(
  'a request repeated by UDP is answered again and not handed over again, application by %s',
  async (app) => {
    const { peer, seen, leg } = await echoing({ app, sip: 'udp' })
    const text = peer.request('MESSAGE', leg, { body: 'once' })
    const first = await peer.next('200 MESSAGE')
    peer.send(text)
    expect((await peer.next('200 MESSAGE')).text).toBe(first.text)
    expect(seen).toHaveLength(1)
  },
)

test.each(['udp', 'tcp'] as const)('calls over IPv6 by %s', async (protocol) => {
  const server = createSipServer({
    listen: [{ protocol, host: '::1', port: 0 }],
    secret: 'cymru',
  })
  await server.start()
  const [listener] = server.listeners
  if (listener === undefined) throw new Error('no listener')
  const seen: SrfRequest[] = []
  const app = await connectInProcess(server, {}, (srf) =>
    srf.options((req, res) => {
      seen.push(req)
      res.send(200)
    }),
  )
  const peer = await SipPeer.open(listener)
  const transport = protocol === 'udp' ? '' : ';transport=tcp'
  peer.request('OPTIONS', peer.leg(`sip:app@[::1]:${listener.port}${transport}`))
  await peer.next('200 OPTIONS')
  expect(seen[0]?.source_address).toBe('::1')

  const asking = await app.srf.request(peer.uri, { method: 'OPTIONS' })
  const answered = responseTo(asking)
  const received = await peer.next('OPTIONS')
  expect(received.get('Via')).toContain(`[::1]:${listener.port}`)
  peer.reply(received, 200, { tag: 'x' })
  expect((await answered).status).toBe(200)
  peer.close()
  app.close()
  await server.stop()
})

test('an answer larger than a datagram is a failure for the application, not for the server', async () => {
  const { rig: running, peer, leg } = await echoing({ app: 'in process', sip: 'udp' })
  const asking = await running.srf.request(peer.uri, {
    method: 'MESSAGE',
    headers: { 'Content-Type': 'text/plain' },
    body: 'x'.repeat(70_000),
  })
  expect((await responseTo(asking)).status).toBe(503)
  peer.request('MESSAGE', leg, { body: 'still there' })
  await peer.next('200 MESSAGE')
})
