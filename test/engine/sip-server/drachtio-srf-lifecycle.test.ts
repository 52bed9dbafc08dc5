/** What is left behind after calls, applications and connections are gone: nothing. */
import { afterEach, describe, expect, test } from 'vitest'
import { sdp, type Leg, type SipPeer } from '../../support/sip-peer.ts'
import { fastTimers, startRig, variants, type Rig, type Variant } from '../../support/sip-rig.ts'
import {
  bookkeeping,
  bridge,
  connectByTcp,
  connectInProcess,
  type Srf,
  type SrfDialog,
} from '../../support/srf.ts'
import { eventually } from '../../support/waiting.ts'

let rig: Rig | undefined
afterEach(async () => {
  await rig?.stop()
  rig = undefined
})

async function start(
  variant: Variant,
  prepare?: (srf: Srf) => void,
  applicationMs = fastTimers.applicationMs,
): Promise<Rig> {
  rig = await startRig(variant, prepare, { ...fastTimers, applicationMs })
  return rig
}

const byTcp: Variant = { app: 'tcp', sip: 'udp' }

/** Every table of the server that belongs to calls, and every map of drachtio-srf. */
function leftovers({ server, srf }: Rig): Record<string, number> {
  const lasting = new Set(['applications', 'clients', 'connections'])
  const sizes = Object.entries({ ...server.stats(), ...bookkeeping(srf) })
  return Object.fromEntries(sizes.filter(([name, size]) => size !== 0 && !lasting.has(name)))
}

/** Transactions live 64·T1 = 640 ms beyond their end; less than a call waits for its application. */
const goneMs = 2_900

const nothingLeft = (from: Rig): Promise<void> =>
  eventually(() => expect(leftovers(from)).toEqual({}), goneMs)

type Ending = 'caller' | 'callee' | 'busy' | 'cancel'

async function bridging(variant: Variant) {
  const target = { uri: '' }
  const started = await start(variant, (srf) =>
    srf.invite((req, res) => void bridge(srf, req, res, target.uri)),
  )
  const callee = await started.peer()
  target.uri = callee.uri
  return { started, callee }
}

/** One whole call as both peers see it. `callee` takes the INVITE that bears the caller's subject. */
async function oneCall(from: Rig, callee: SipPeer, ending: Ending): Promise<void> {
  const caller = await from.peer()
  const leg = caller.leg(from.uri('app'))
  caller.request('INVITE', leg, { body: sdp(leg.callId) })
  const invite = await callee.next(
    (message) => message.method === 'INVITE' && message.body.includes(`s=${leg.callId}\r\n`),
  )
  const callId = invite.get('Call-ID')
  const ofCall = (wanted: string) => (message: typeof invite) =>
    message.get('Call-ID') === callId && message.method === wanted
  if (ending === 'busy') {
    callee.reply(invite, 486, { tag: callId })
    await caller.next('486 INVITE')
    return acknowledgeFailure(caller, leg)
  }
  callee.reply(invite, 180, { tag: callId })
  await caller.next('180 INVITE')
  if (ending === 'cancel') {
    caller.request('CANCEL', leg)
    await caller.next('487 INVITE')
    acknowledgeFailure(caller, leg)
    callee.reply(await callee.next(ofCall('CANCEL')), 200, { tag: callId })
    return callee.reply(invite, 487, { tag: callId })
  }
  callee.reply(invite, 200, { tag: callId, body: sdp('callee') })
  const ok = await caller.next('200 INVITE')
  caller.learn(leg, ok)
  caller.request('ACK', leg)
  await callee.next(ofCall('ACK'))
  if (ending === 'caller') {
    caller.request('BYE', leg)
    await caller.next('200 BYE')
    callee.reply(await callee.next(ofCall('BYE')), 200)
  } else {
    callee.request('BYE', callee.calledLeg(invite, callId))
    caller.reply(await caller.next('BYE'), 200)
  }
}

/** The ACK of a failure bears the branch of its INVITE. */
function acknowledgeFailure(caller: SipPeer, leg: Leg): void {
  const { branch } = leg
  const text = caller.request('ACK', { ...leg })
  caller.send(text.replace(/branch=\S+/, `branch=${branch}`))
}

describe.each(variants)('application by $app, SIP by $sip', (variant) => {
  test('after a burst of calls nothing is left, in the server and in drachtio-srf', async () => {
    const { started, callee } = await bridging(variant)
    const endings: Ending[] = ['caller', 'callee', 'busy', 'cancel']
    await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        oneCall(started, callee, endings[i % endings.length] ?? 'caller'),
      ),
    )
    await nothingLeft(started)
    expect(started.server.stats()).toMatchObject({
      dialogs: 0,
      serverTransactions: 0,
      outboundRequests: 0,
    })
  })
})

// How the application is connected makes no difference to what times out.
describe.each(variants.filter(({ app }) => app === 'in process'))('SIP by $sip', (variant) => {})

test('a verb that was given back is not routed any more', async () => {
  const started = await start(byTcp, (srf) => {
    srf.options((_req, res) => res.send(200))
    srf.message((_req, res) => res.send(200))
  })
  const caller = await started.peer()
  caller.request('MESSAGE', caller.leg(started.uri('app')))
  await caller.next('200 MESSAGE')
  started.srf.app.client.removeRoute('message')
  await eventually(async () => {
    caller.request('MESSAGE', caller.leg(started.uri('app')))
    const answer = await caller.next(({ status }) => status >= 200)
    expect(answer.status).toBe(405)
  })
  caller.request('OPTIONS', caller.leg(started.uri('app')))
  await caller.next('200 OPTIONS')
  expect(started.srf.app.client.idle).toBe(true)
})

test.each([
  ['tcp', connectByTcp],
  ['in process', connectInProcess],
])('drachtio-srf is told that its secret is wrong, by %s', async (_name, connector) => {
  const { server } = await start(byTcp)
  await expect(connector(server, { secret: 'wrong' })).rejects.toThrow('failed to authenticate')
  await eventually(() => expect(server.stats()['clients']).toBe(1))
})

test('a dialog over a connection that was closed goes on over a new one', async () => {
  const dialogs: SrfDialog[] = []
  const started = await start({ app: 'in process', sip: 'tcp' }, (srf) =>
    srf.invite((req, res) => {
      void srf.createUAS(req, res, { localSdp: sdp('app') }).then((dialog) => dialogs.push(dialog))
    }),
  )
  const caller = await started.peer()
  const leg = caller.leg(started.uri('app'))
  caller.request('INVITE', leg, { body: sdp('caller') })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await eventually(() => expect(dialogs).toHaveLength(1))
  caller.hangUp()
  await eventually(() => expect(started.server.stats()['connections']).toBe(0))
  const ended = dialogs[0]?.destroy()
  caller.reply(await caller.next('BYE'), 200)
  expect((await ended)?.method).toBe('BYE')
})
