/** What can happen in the dialogs of an unmodified drachtio-srf: 100rel, session timers, subscriptions. */
import { afterEach, describe, expect, test } from 'vitest'
import { sdp, type PeerMessage, type SipPeer } from '../../support/sip-peer.ts'
import { startRig, variants, type Rig, type Variant } from '../../support/sip-rig.ts'
import type { Srf, SrfRequest, SrfResponse } from '../../support/srf.ts'
import { emitted } from '../../support/waiting.ts'
import { deferred } from '../../support/deferred.ts'

let rig: Rig | undefined
afterEach(async () => {
  await rig?.stop()
  rig = undefined
})

async function start(variant: Variant, prepare?: (srf: Srf) => void): Promise<Rig> {
  rig = await startRig(variant, prepare, {}, 2)
  return rig
}

function prack(peer: SipPeer, leg: ReturnType<SipPeer['leg']>, response: PeerMessage): void {
  peer.learn(leg, response)
  peer.request('PRACK', leg, { headers: [`RAck: ${response.get('RSeq')} 1 INVITE`] })
}

describe.each(variants)('application by $app, SIP by $sip', (variant) => {
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
    prack(caller, leg, early)
    await caller.next('200 PRACK')
    expect(await acknowledged.promise).toBe(`${early.get('RSeq')} 1 INVITE`)
    await caller.next('486 INVITE')
  })

  test('a B2BUA is reliable on both legs, and the answer follows the last PRACK', async () => {
    const { peer, uri } = await start(variant, (srf) =>
      srf.invite((req, res) => {
        const options = { proxyRequestHeaders: ['supported'], proxyResponseHeaders: ['require'] }
        void srf.createB2BUA(req, res, callee.uri, options)
      }),
    )
    const [caller, callee] = [await peer(), await peer()]
    const leg = caller.leg(uri('app'))
    caller.request('INVITE', leg, { headers: ['Supported: 100rel'], body: sdp('caller') })
    const invite = await callee.next('INVITE')
    const headers = ['Require: 100rel', 'RSeq: 9']
    callee.reply(invite, 183, { tag: 'b', headers, body: sdp('early') })
    callee.reply(await callee.next('PRACK'), 200)
    const early = await caller.next('183 INVITE')
    callee.reply(invite, 200, { tag: 'b', body: sdp('early') })
    prack(caller, leg, early)
    const statuses = [await caller.next(200), await caller.next(200)].map((m) => m.get('CSeq'))
    expect(statuses).toEqual(['2 PRACK', '1 INVITE'])
  })

  test('a subscription: NOTIFYs reach the dialog, also one that overtakes the answer', async () => {
    const early = deferred<string>()
    const { srf, peer } = await start(variant, (application) =>
      application.use('notify', (req, res) => {
        res.send(200)
        early.resolve(req.get('Subscription-State'))
      }),
    )
    const callee = await peer()
    const headers = { Event: 'presence', Expires: '600' }
    const subscribing = srf.createUAC(callee.uri, { method: 'SUBSCRIBE', headers })
    const subscribe = await callee.next('SUBSCRIBE')
    const leg = callee.calledLeg(subscribe, 'n')
    const notify = (state: string): void => {
      callee.request('NOTIFY', leg, {
        headers: ['Event: presence', `Subscription-State: ${state}`],
      })
    }
    notify('pending')
    await callee.next('200 NOTIFY')
    expect(await early.promise).toBe('pending')
    callee.reply(subscribe, 202, { tag: 'n', headers: ['Expires: 600'] })
    const dialog = await subscribing
    const notified = emitted(dialog, 'notify')
    dialog.once('notify', (_request: SrfRequest, answer: SrfResponse) => answer.send(200))
    notify('active;expires=600')
    await notified
    await callee.next('200 NOTIFY')
  })
})
