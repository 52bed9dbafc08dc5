/** Calls of an unmodified drachtio-srf through the server, against peers on raw sockets. */
import { afterEach, describe, expect, test } from 'vitest'
import { sdp, type PeerMessage, type SipPeer } from '../../support/sip-peer.ts'
import { startRig, variants, type Rig, type Variant } from '../../support/sip-rig.ts'
import {
  bridge,
  type Srf,
  type SrfDialog,
  type SrfRequest,
  type SrfResponse,
} from '../../support/srf.ts'
import { emitted } from '../../support/waiting.ts'

let rig: Rig | undefined
afterEach(async () => {
  await rig?.stop()
  rig = undefined
})

async function start(variant: Variant, prepare?: (srf: Srf) => void): Promise<Rig> {
  rig = await startRig(variant, prepare)
  return rig
}

/** A dialog as soon as the application has it. */
function dialogs() {
  const waiting: ((dialog: SrfDialog) => void)[] = []
  const ready: SrfDialog[] = []
  return {
    put: (dialog: SrfDialog) => {
      const waiter = waiting.shift()
      if (waiter) waiter(dialog)
      else ready.push(dialog)
    },
    next: (): Promise<SrfDialog> => {
      const dialog = ready.shift()
      return dialog ? Promise.resolve(dialog) : new Promise((resolve) => waiting.push(resolve))
    },
  }
}

/** The peer calls, the application answers with `createUAS`, the peer acknowledges. */
async function answeredCall(variant: Variant) {
  const answered = dialogs()
  const { uri, peer, ...rest } = await start(variant, (srf) =>
    srf.invite((req, res) => {
      void srf.createUAS(req, res, { localSdp: sdp('app') }).then(answered.put)
    }),
  )
  const caller = await peer()
  const leg = caller.leg(uri('app'))
  caller.request('INVITE', leg, { body: sdp('caller') })
  await caller.next('100 INVITE')
  const ok = await caller.next('200 INVITE')
  caller.learn(leg, ok)
  caller.request('ACK', leg)
  return { ...rest, uri, caller, leg, ok, dialog: await answered.next() }
}

/** The application calls the peer, which answers. */
async function outgoingCall(variant: Variant) {
  const { srf, peer, ...rest } = await start(variant)
  const callee = await peer()
  const dialing = srf.createUAC(callee.uri, { localSdp: sdp('app') })
  const invite = await callee.next('INVITE')
  callee.reply(invite, 180, { tag: 'callee' })
  callee.reply(invite, 200, { tag: 'callee', body: sdp('callee') })
  const ack = await callee.next('ACK')
  const leg = callee.calledLeg(invite, 'callee')
  return { ...rest, srf, callee, invite, ack, leg, dialog: await dialing }
}

/** The next request of this method in a dialog, for the application to answer. */
const inDialog = (dialog: SrfDialog, method: string): Promise<readonly [SrfRequest, SrfResponse]> =>
  new Promise((resolve) =>
    dialog.once(method.toLowerCase(), (request: SrfRequest, response: SrfResponse) =>
      resolve([request, response]),
    ),
  )

const branchOf = (message: PeerMessage): string =>
  /branch=([^;]+)/.exec(message.get('Via'))?.[1] ?? ''

/** The body of what a peer or an application got, by the name that `sdp` gave it. */
const nameOf = (body: string): string => /s=(.*)\r\n/.exec(body)?.[1] ?? ''

describe.each(variants)('application by $app, SIP by $sip', (variant) => {
  test('an application answers a call, and the caller ends it', async () => {
    const { caller, leg, ok, dialog } = await answeredCall(variant)
    expect(nameOf(ok.body)).toBe('app')
    expect(nameOf(dialog.remote.sdp)).toBe('caller')
    expect(dialog.id).toBe(`${leg.callId};from-tag=${/tag=(.*)/.exec(leg.from)?.[1]}`)
    const destroyed = emitted(dialog, 'destroy')
    caller.request('BYE', leg)
    await caller.next('200 BYE')
    expect((await destroyed)[1]).toBe('normal release')
  })

  test('an application calls, is answered, and ends the call', async () => {
    const { callee, invite, ack, dialog, leg } = await outgoingCall(variant)
    expect(invite.get('Max-Forwards')).toBe('70')
    expect(invite.get('From')).toMatch(/tag=./)
    expect(nameOf(invite.body)).toBe('app')
    expect(ack.get('CSeq')).toBe(invite.get('CSeq').replace('INVITE', 'ACK'))
    expect(ack.uri).toBe(callee.uri)
    expect(branchOf(ack)).not.toBe(branchOf(invite))
    expect(nameOf(dialog.remote.sdp)).toBe('callee')
    const ended = dialog.destroy()
    const bye = await callee.next('BYE')
    expect(bye.get('To')).toBe(leg.from)
    callee.reply(bye, 200)
    await ended
  })

  test('a call without an offer gets the answer in the ACK', async () => {
    const { srf, peer } = await start(variant)
    const callee = await peer()
    const dialing = srf.createUAC(callee.uri, { noAck: true })
    const invite = await callee.next('INVITE')
    expect(invite.body).toBe('')
    callee.reply(invite, 200, { tag: 'callee', body: sdp('offer') })
    const late = await dialing
    expect(nameOf(late.sdp)).toBe('offer')
    const acknowledged = late.ack(sdp('answer'))
    expect(nameOf((await callee.next('ACK')).body)).toBe('answer')
    expect((await acknowledged).connected).toBe(true)
  })

  test('a challenged call is repeated with credentials', async () => {
    const { srf, peer } = await start(variant)
    const callee = await peer()
    const auth = { username: 'alice', password: 'secret' }
    const dialing = srf.createUAC(callee.uri, { localSdp: sdp('app'), auth })
    const first = await callee.next('INVITE')
    callee.reply(first, 407, {
      tag: 'challenge',
      headers: ['Proxy-Authenticate: Digest realm="example.net", nonce="n1", qop="auth"'],
    })
    const second = await callee.next('INVITE')
    expect(second.get('Proxy-Authorization')).toContain('username="alice"')
    expect(second.get('Call-ID')).toBe(first.get('Call-ID'))
    expect(second.get('From')).toBe(first.get('From'))
    expect(parseInt(second.get('CSeq'), 10)).toBe(parseInt(first.get('CSeq'), 10) + 1)
    callee.reply(second, 200, { tag: 'callee', body: sdp('callee') })
    await callee.next(
      (message) =>
        message.method === 'ACK' &&
        message.get('CSeq') === second.get('CSeq').replace('INVITE', 'ACK'),
    )
    expect((await dialing).connected).toBe(true)
  })

  test('a re-INVITE of the application changes the session', async () => {
    const { callee, dialog, invite } = await outgoingCall(variant)
    const modifying = dialog.modify(sdp('app again'))
    const again = await callee.next('INVITE')
    expect(nameOf(again.body)).toBe('app again')
    expect(again.uri).toBe(callee.uri)
    expect(again.get('Call-ID')).toBe(invite.get('Call-ID'))
    expect(again.get('CSeq')).not.toBe(invite.get('CSeq'))
    callee.reply(again, 200, { body: sdp('callee again') })
    const ack = await callee.next('ACK')
    expect(ack.get('CSeq')).toBe(again.get('CSeq').replace('INVITE', 'ACK'))
    expect(nameOf(await modifying)).toBe('callee again')
  })

  test.each(['INFO', 'REFER', 'UPDATE', 'OPTIONS', 'MESSAGE', 'NOTIFY'])(
    '%s travels in both directions of a dialog',
    async (method) => {
      const { caller, leg, dialog } = await answeredCall(variant)
      const arrived = inDialog(dialog, method)
      caller.request(method, leg, {
        headers: ['X-Way: in', 'Refer-To: <sip:c@127.0.0.1>', 'Event: x'],
      })
      const [request, response] = await arrived
      expect(request.get('X-Way')).toBe('in')
      response.send(202, { headers: { 'X-Answer': 'taken' } })
      expect((await caller.next(`202 ${method}`)).get('X-Answer')).toBe('taken')

      const answered = dialog.request({ method, headers: { 'X-Way': 'out' } })
      const received = await caller.next(method)
      expect(received.get('X-Way')).toBe('out')
      caller.reply(received, 202)
      expect((await answered).status).toBe(202)
    },
  )

  test('a B2BUA joins two legs, and the end of one ends the other', async () => {
    const { caller, leg, callee } = await bridgedCall(variant)
    caller.request('BYE', leg)
    await caller.next('200 BYE')
    const bye = await callee.peer.next('BYE')
    expect(bye.get('Call-ID')).not.toBe(leg.callId)
    callee.peer.reply(bye, 200)
  })
})

async function ringingCall(variant: Variant) {
  const target: { uri: string } = { uri: '' }
  const { uri, peer } = await start(variant, (srf) =>
    srf.invite((req, res) => void bridge(srf, req, res, target.uri)),
  )
  const [caller, calleePeer] = await Promise.all([peer(), peer()])
  target.uri = calleePeer.uri
  const leg = caller.leg(uri('app'))
  caller.request('INVITE', leg, { body: sdp('caller'), headers: ['Subject: hello'] })
  const invite = await calleePeer.next('INVITE')
  expect(invite.get('Subject')).toBe('hello')
  expect(invite.get('Call-ID')).not.toBe(leg.callId)
  calleePeer.reply(invite, 180, { tag: 'callee' })
  await caller.next('180 INVITE')
  return {
    caller,
    leg,
    callee: { peer: calleePeer, invite, leg: calleePeer.calledLeg(invite, 'callee') },
  }
}

async function bridgedCall(variant: Variant): Promise<{
  caller: SipPeer
  leg: ReturnType<SipPeer['leg']>
  callee: { peer: SipPeer; leg: ReturnType<SipPeer['leg']> }
}> {
  const ringing = await ringingCall(variant)
  const { caller, leg, callee } = ringing
  callee.peer.reply(callee.invite, 200, { tag: 'callee', body: sdp('callee') })
  const ok = await caller.next('200 INVITE')
  expect(nameOf(ok.body)).toBe('callee')
  caller.learn(leg, ok)
  caller.request('ACK', leg)
  await callee.peer.next('ACK')
  return ringing
}
