/**
 * What the suite of drachtio-server checks, one test for each of its 24 fixtures, under its names: the program with a file
 * like theirs, an unmodified drachtio-srf by TCP, and peers on real sockets. What differs from there is said at the test.
 */
import { describe, expect, test } from 'vitest'
import { sdp, type PeerMessage, type SipPeer } from '../../support/sip-peer.ts'
import type { SipServerProgram } from '../../support/sip-server-program.ts'
import {
  answered,
  call,
  hangUp,
  sendInvite,
  start,
  startBridge,
  startServer,
  takeCalls,
  type Setup,
} from '../../support/sip-server-suite.ts'
import { responseTo, type SrfRequest, type SrfResponse } from '../../support/srf.ts'
import { Signal } from '../../support/waiting.ts'

/** The same with one that forwards, and how that ended. */
async function startProxy(
  protocol: 'udp' | 'tcp',
  setup: Setup = {},
  targetOf: (callee: SipPeer) => string = ({ uri }) => uri,
) {
  const target = { uri: '' }
  const failed: unknown[] = []
  const { server } = await start((srf) => {
    srf.invite((request) => {
      srf.proxyRequest(request, target.uri, { recordRoute: true }).catch((error: unknown) => {
        failed.push(error)
      })
    })
  }, setup)
  const callee = await server.peer(protocol)
  target.uri = targetOf(callee)
  return { server, callee, failed }
}

const headersOf = (invite: PeerMessage): readonly string[] =>
  invite.all('Record-Route').map((value) => `Record-Route: ${value}`)

/** A call through a proxy, from its INVITE to its BYE. */
async function expectForwarded(
  server: SipServerProgram,
  callee: SipPeer,
  protocol: 'udp' | 'tcp' = 'udp',
  headers: readonly string[] = [],
): Promise<PeerMessage> {
  const { caller, leg } = await call(server, { headers }, protocol)
  const invite = await callee.next('INVITE')
  callee.reply(invite, 180, { tag: 'b', headers: headersOf(invite) })
  await caller.next(180)
  callee.reply(invite, 200, { tag: 'b', headers: headersOf(invite), body: sdp('callee') })
  expect((await answered(caller, leg)).body).toBe(sdp('callee'))
  await callee.next('ACK')
  await hangUp(caller, leg, callee)
  return invite
}

describe('config', () => {})

describe('uac', () => {
  // The suite has the INVITE twice.
  test.each(['OPTIONS', 'INVITE', 'INVITE'])('handled delayed %s response', async (method) => {
    const timers = '<timers><t1>20</t1><t2>80</t2></timers>'
    const { server, srf } = await start(() => undefined, { transports: 'udp', more: timers })
    const callee = await server.peer()
    const response = responseTo(await srf.request(callee.uri, { method }))
    for (let copies = 0; copies < 3; copies += 1) await callee.next(method)
    callee.reply(await callee.next(method), 200, { tag: 'b' })
    expect((await response).status).toBe(200)
  })
})

describe('b2b', () => {
  test('handles utf8 chars in Contact', async () => {
    const { server, callee } = await startBridge()
    const caller = await server.peer()
    const name = `"Virtuális kolléga" <sip:sipp@127.0.0.1:${caller.port}>`
    const leg = sendInvite(caller, server.uri('a'), { from: name, contact: name })
    callee.reply(await callee.next('INVITE'), 200, { tag: 'b', body: sdp('callee') })
    const ok = await answered(caller, leg)
    expect(ok.get('From')).toBe(leg.from)
    await callee.next('ACK')
    await hangUp(caller, leg, callee)
  })

  test('multiple provisional responses', async () => {
    const { server, callee } = await startBridge()
    const { caller, leg } = await call(server)
    const invite = await callee.next('INVITE')
    callee.reply(invite, 100)
    callee.reply(invite, 183, { tag: 'b', body: sdp('early') })
    expect((await caller.next(183)).body).toBe(sdp('early'))
    callee.reply(invite, 180, { tag: 'b', body: sdp('ringing') })
    await caller.next(180)
    callee.reply(invite, 200, { tag: 'b', body: sdp('callee') })
    await answered(caller, leg)
    await callee.next('ACK')
    await hangUp(caller, leg, callee)
  })

  test('handles very long sdp', async () => {
    const { server, callee } = await startBridge('tcp')
    const long =
      sdp('long') + 'a=candidate:1 1 UDP 2130706431 192.0.2.1 4000 typ host\r\n'.repeat(250)
    const { caller, leg } = await call(server, { body: long })
    const invite = await callee.next('INVITE')
    expect(invite.body).toBe(long)
    callee.reply(invite, 200, { tag: 'b', body: long.replace('s=long', 's=back') })
    expect((await answered(caller, leg)).body).toBe(long.replace('s=long', 's=back'))
    await callee.next('ACK')
    await hangUp(caller, leg, callee)
  })

  // There the user has a `/` that its parser refuses, and the caller gets 500. RFC 3261 §25.1 allows one: such a call goes
  // through. A user with what is not allowed is 400 by the server itself, and no application hears of it.
  test('rejects invalid uri user part', async () => {
    const { server, callee } = await startBridge()
    const odd = `sip:-TXDOTFILE-INSINT%26FIRST60DAYS-R/SREGOWNER@127.0.0.1:${server.port('udp')}`
    const caller = await server.peer()
    const contact = `<${caller.uri}>`
    const leg = sendInvite(caller, odd, { from: contact, contact })
    callee.reply(await callee.next('INVITE'), 200, { tag: 'b', body: sdp('callee') })
    await answered(caller, leg)
    await callee.next('ACK')
    await hangUp(caller, leg, callee)
    const wrong = `sip:a"b[c]@127.0.0.1:${server.port('udp')}`
    sendInvite(caller, wrong, { from: contact, contact })
    await caller.next(400)
    expect(callee.inbox).toEqual([])
  })

  test('cancels B when receive cancel from A', async () => {
    const { server, callee } = await startBridge()
    const { caller, leg } = await call(server)
    const invite = await callee.next('INVITE')
    callee.reply(invite, 183, { tag: 'b', body: sdp('early') })
    await caller.next(183)
    caller.request('CANCEL', leg)
    callee.reply(await callee.next('CANCEL'), 200, { tag: 'b' })
    callee.reply(invite, 487, { tag: 'b' })
    await callee.next('ACK')
    await caller.next('200 CANCEL')
    expect((await caller.next('487 INVITE')).get('Call-ID')).toBe(leg.callId)
  })

  test('ACK-BYE to B when A CANCELS in race condition as we send 200 OK', async () => {
    const { server, callee } = await startBridge()
    const { caller, leg } = await call(server)
    const invite = await callee.next('INVITE')
    callee.reply(invite, 183, { tag: 'b', body: sdp('early') })
    await caller.next(183)
    caller.request('CANCEL', leg)
    callee.reply(await callee.next('CANCEL'), 200, { tag: 'b' })
    callee.reply(invite, 200, { tag: 'b', body: sdp('callee') })
    await callee.next('ACK')
    callee.reply(await callee.next('BYE'), 200)
    await caller.next('487 INVITE')
  })
})

describe('proxy', () => {
  test('proxy success', async () => {
    const { server, callee } = await startProxy('udp')
    await expectForwarded(server, callee)
  })

  test('remove preloaded Route header', async () => {
    const { server, callee } = await startProxy('udp')
    const route = `Route: <sip:18005551212@127.0.0.1:${server.port('udp')};lr>`
    expect((await expectForwarded(server, callee, 'udp', [route])).all('Route')).toEqual([])
  })

  test('use tcp when specified', async () => {
    const { server, callee } = await startProxy('tcp')
    await expectForwarded(server, callee, 'tcp')
  })

  test('return 500 if call cannot be proxied due to lack of appropriate tport', async () => {
    const byUdp = ({ port }: SipPeer): string => `sip:127.0.0.1:${port};transport=udp`
    const { server } = await startProxy('tcp', { transports: 'tcp' }, byUdp)
    const { caller } = await call(server, {}, 'tcp')
    await caller.next('500 INVITE')
  })
})

describe('reinvite', () => {
  test('null sdp', async () => {
    const acknowledged = new Signal()
    let ended: Promise<unknown> | undefined
    const { server } = await start((srf) =>
      takeCalls(srf, (dialog) => {
        dialog.on('modify', (_again: SrfRequest, answer: SrfResponse) =>
          answer.send(200, { body: sdp('offer') }, undefined, () => {
            ended = dialog.destroy()
            acknowledged.fire()
          }),
        )
      }),
    )
    const { caller, leg } = await call(server)
    await answered(caller, leg)
    caller.request('INVITE', leg)
    expect((await caller.next('200 INVITE')).body).toBe(sdp('offer'))
    caller.request('ACK', leg, { body: sdp('answer') })
    caller.reply(await caller.next('BYE'), 200)
    await acknowledged.until(() => ended !== undefined)
    await ended
  })
})

describe('connection tests', () => {
  test('send 503 when no apps connected', async () => {
    const { caller } = await call(await startServer())
    await caller.next('503 INVITE')
  })
})
