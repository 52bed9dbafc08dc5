/**
 * Calls, proxies and subscriptions of an unmodified drachtio-srf through the server, against peers
 * on raw sockets.
 */
import { afterEach, describe, expect, test } from 'vitest'
import { deferred } from '../../support/deferred.ts'
import { sdp } from '../../support/sip-peer.ts'
import { fastTimers, startRig, variants, type Rig, type Variant } from '../../support/sip-rig.ts'
import {
  bookkeeping,
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

async function start(
  variant: Variant,
  prepare?: (srf: Srf) => void,
  timers: Partial<typeof fastTimers> = {},
): Promise<Rig> {
  rig = await startRig(variant, prepare, timers)
  return rig
}

/** The next request of this method in a dialog, for the application to answer. */
const inDialog = (dialog: SrfDialog, method: string): Promise<readonly [SrfRequest, SrfResponse]> =>
  new Promise((resolve) =>
    dialog.once(method.toLowerCase(), (request: SrfRequest, response: SrfResponse) =>
      resolve([request, response]),
    ),
  )

const lasting = new Set(['applications', 'clients', 'connections'])

/**
 * Every table of the server that belongs to calls, and every map of drachtio-srf, is empty again.
 */
async function nothingLeft({ server, srf }: Rig): Promise<void> {
  const left = () => {
    const sizes = Object.entries({ ...server.stats(), ...bookkeeping(srf) })
    return sizes.filter(([name, size]) => size !== 0 && !lasting.has(name))
  }
  await expect.poll(left).toEqual([])
}

/** An application that answers every MESSAGE with its own body. */
async function echoing(variant: Variant) {
  const seen: SrfRequest[] = []
  const { peer, uri } = await start(variant, (srf) =>
    srf.message((req, res) => {
      seen.push(req)
      res.send(200, { headers: { 'Content-Type': 'text/plain' }, body: req.body })
    }),
  )
  const sender = await peer()
  return { peer: sender, seen, leg: sender.leg(uri('app')) }
}

describe.each(variants)('application by $app, SIP by $sip', (variant) => {
  test('an application answers a call, in which requests travel both ways, and the caller ends it', async () => {
    const answered = deferred<SrfDialog>()
    const answer = (srf: Srf): void =>
      srf.invite((req, res) => {
        void srf.createUAS(req, res, { localSdp: sdp('app') }).then(answered.resolve)
      })
    const started = await start(variant, answer, fastTimers)
    const caller = await started.peer()
    const leg = caller.leg(started.uri('app'))
    caller.request('INVITE', leg, { body: sdp('caller') })
    const ok = await caller.next('200 INVITE')
    expect(ok.body).toBe(sdp('app'))
    caller.learn(leg, ok)
    caller.request('ACK', leg)
    const dialog = await answered.promise
    expect(dialog.remote.sdp).toBe(sdp('caller'))
    expect(dialog.id).toBe(`${leg.callId};from-tag=${/tag=(.*)/.exec(leg.from)?.[1]}`)

    for (const method of ['INFO', 'REFER', 'UPDATE', 'OPTIONS', 'MESSAGE', 'NOTIFY']) {
      const arrived = inDialog(dialog, method)
      const headers = ['X-Way: in', 'Refer-To: <sip:c@127.0.0.1>', 'Event: x']
      caller.request(method, leg, { headers })
      const [request, response] = await arrived
      expect(request.get('X-Way')).toBe('in')
      response.send(202, { headers: { 'X-Answer': 'taken' } })
      expect((await caller.next(`202 ${method}`)).get('X-Answer')).toBe('taken')
      const asked = dialog.request({ method, headers: { 'X-Way': 'out' } })
      const received = await caller.next(method)
      expect(received.get('X-Way')).toBe('out')
      caller.reply(received, 202)
      expect((await asked).status).toBe(202)
    }

    const destroyed = emitted(dialog, 'destroy')
    caller.request('BYE', leg)
    await caller.next('200 BYE')
    expect((await destroyed)[1]).toBe('normal release')
    await nothingLeft(started)
  })

  test('a call without an offer gets the answer in the ACK, and the application ends it', async () => {
    const { srf, peer } = await start(variant)
    const callee = await peer()
    const dialing = srf.createUAC(callee.uri, { noAck: true })
    const invite = await callee.next('INVITE')
    expect([invite.body, invite.get('Max-Forwards')]).toEqual(['', '70'])
    callee.reply(invite, 200, { tag: 'callee', body: sdp('offer') })
    const late = await dialing
    expect(late.sdp).toBe(sdp('offer'))
    const acknowledged = late.ack(sdp('answer'))
    const ack = await callee.next('ACK')
    expect([ack.body, ack.uri]).toEqual([sdp('answer'), callee.uri])
    const ended = (await acknowledged).destroy()
    callee.reply(await callee.next('BYE'), 200)
    await ended
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
    for (const name of ['Call-ID', 'From']) expect(second.get(name)).toBe(first.get(name))
    expect(parseInt(second.get('CSeq'), 10)).toBe(parseInt(first.get('CSeq'), 10) + 1)
    callee.reply(second, 200, { tag: 'callee', body: sdp('callee') })
    expect((await dialing).connected).toBe(true)
  })

  test('a B2BUA joins two legs, and the end of one ends the other', async () => {
    const target = { uri: '' }
    const join = (srf: Srf): void =>
      srf.invite((req, res) => void bridge(srf, req, res, target.uri))
    const started = await start(variant, join, fastTimers)
    const [caller, callee] = await Promise.all([started.peer(), started.peer()])
    target.uri = callee.uri
    const leg = caller.leg(started.uri('app'))
    caller.request('INVITE', leg, { body: sdp('caller'), headers: ['Subject: hello'] })
    const invite = await callee.next('INVITE')
    expect(invite.get('Subject')).toBe('hello')
    expect(invite.get('Call-ID')).not.toBe(leg.callId)
    callee.reply(invite, 180, { tag: 'callee' })
    await caller.next('180 INVITE')
    callee.reply(invite, 200, { tag: 'callee', body: sdp('callee') })
    const ok = await caller.next('200 INVITE')
    expect(ok.body).toBe(sdp('callee'))
    caller.learn(leg, ok)
    caller.request('ACK', leg)
    await callee.next('ACK')
    caller.request('BYE', leg)
    await caller.next('200 BYE')
    callee.reply(await callee.next('BYE'), 200)
    await nothingLeft(started)
  })

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

  test('a call goes through a proxy that stays in it: INVITE, ACK and BYE, and nothing is left', async () => {
    const came = deferred<SrfRequest>()
    const started = await start(variant, (srf) => srf.invite(came.resolve), fastTimers)
    const { srf, uri } = started
    const [caller, callee] = await Promise.all([started.peer(), started.peer()])
    const leg = caller.leg(uri('bob'))
    caller.request('INVITE', leg, { body: sdp('caller') })
    const result = srf.proxyRequest(await came.promise, callee.uri, { remainInDialog: true })
    const invite = await callee.next('INVITE')
    const recordRoutes = invite.all('Record-Route')
    const headers = recordRoutes.map((value) => `Record-Route: ${value}`)
    expect(recordRoutes.length).toBeGreaterThan(0)
    callee.reply(invite, 180, { tag: 'b', headers })
    await caller.next(180)
    callee.reply(invite, 200, { tag: 'b', headers, body: sdp('callee') })
    const ok = await caller.next('200 INVITE')
    expect(ok.body).toBe(sdp('callee'))
    await expect(result).resolves.toMatchObject({ connected: true, finalStatus: 200 })
    caller.learn(leg, ok)
    leg.routes = ok.all('Record-Route').toReversed()
    caller.request('ACK', leg)
    await callee.next('ACK')
    callee.request('BYE', { ...callee.calledLeg(invite, 'b'), routes: recordRoutes })
    caller.reply(await caller.next('BYE'), 200)
    await callee.next('200 BYE')
    await nothingLeft(started)
  })

  test('a reliable response: the application gets the PRACK where it waits for it', async () => {
    const acknowledged = deferred<string>()
    const { peer, uri } = await start(variant, (srf) =>
      srf.invite((_req, res) =>
        res.send(183, { headers: { Require: '100rel' }, body: sdp('early') }, undefined, (ack) => {
          acknowledged.resolve(ack.get('RAck'))
          res.send(486)
        }),
      ),
    )
    const caller = await peer()
    const leg = caller.leg(uri('app'))
    caller.request('INVITE', leg, { headers: ['Supported: 100rel'], body: sdp('caller') })
    const early = await caller.next('183 INVITE')
    caller.learn(leg, early)
    const rack = `${early.get('RSeq')} 1 INVITE`
    caller.request('PRACK', leg, { headers: [`RAck: ${rack}`] })
    await caller.next('200 PRACK')
    expect(await acknowledged.promise).toBe(rack)
    await caller.next('486 INVITE')
  })
})
