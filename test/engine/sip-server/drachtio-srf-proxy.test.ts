/** `srf.proxyRequest` of an unmodified drachtio-srf, against peers on raw sockets. */
import { afterEach, describe, expect, test } from 'vitest'
import { sdp } from '../../support/sip-peer.ts'
import { fastTimers, startRig, variants, type Rig } from '../../support/sip-rig.ts'
import { bookkeeping, type Srf, type SrfRequest } from '../../support/srf.ts'

let rig: Rig | undefined
afterEach(async () => {
  await rig?.stop()
  rig = undefined
})

const alwaysThere = new Set(['applications', 'clients', 'connections'])

/** The next request that the application gets. */
function requests() {
  const got: SrfRequest[] = []
  let wake: ((request: SrfRequest) => void) | undefined
  return {
    prepare: (srf: Srf): void =>
      srf.invite((request) => {
        if (wake) wake(request)
        else got.push(request)
      }),
    next: (): Promise<SrfRequest> => {
      const request = got.shift()
      return request ? Promise.resolve(request) : new Promise((resolve) => (wake = resolve))
    },
  }
}

describe.each(variants)('application $app, SIP by $sip', (variant) => {
  test('a call goes through a proxy that stays in it: INVITE, ACK and BYE, and nothing is left', async () => {
    const incoming = requests()
    rig = await startRig(variant, incoming.prepare, fastTimers)
    const { srf, server, uri, peer } = rig
    const caller = await peer()
    const callee = await peer()
    const leg = caller.leg(uri('bob'))
    caller.request('INVITE', leg, { body: sdp('caller') })
    const result = srf.proxyRequest(await incoming.next(), callee.uri, { remainInDialog: true })

    const invite = await callee.next('INVITE')
    const recordRoutes = invite.all('Record-Route')
    const headers = recordRoutes.map((value) => `Record-Route: ${value}`)
    expect(recordRoutes.length).toBeGreaterThan(0)
    callee.reply(invite, 180, { tag: 'b', headers })
    expect((await caller.next(180)).get('To')).toContain('tag=b')
    callee.reply(invite, 200, { tag: 'b', headers, body: sdp('callee') })
    const ok = await caller.next('200 INVITE')
    expect(ok.body).toBe(sdp('callee'))
    await expect(result).resolves.toMatchObject({ connected: true, finalStatus: 200 })

    caller.learn(leg, ok)
    leg.routes = ok.all('Record-Route').toReversed()
    caller.request('ACK', leg)
    expect((await callee.next('ACK')).get('CSeq')).toBe('1 ACK')
    const called = callee.calledLeg(invite, 'b')
    called.routes = recordRoutes
    callee.request('BYE', called)
    const bye = await caller.next('BYE')
    caller.reply(bye, 200)
    await callee.next('200 BYE')
    await expect.poll(() => Object.values(bookkeeping(srf)).every((size) => size === 0)).toBe(true)
    await expect
      .poll(() => {
        const tables = Object.entries(server.stats())
        return tables.filter(([name, size]) => size !== 0 && !alwaysThere.has(name))
      })
      .toEqual([])
  })

  test('the application learns what each destination has answered', async () => {
    const incoming = requests()
    rig = await startRig(variant, incoming.prepare)
    const { srf, uri, peer } = rig
    const caller = await peer()
    const busy = await peer()
    const free = await peer()
    caller.request('INVITE', caller.leg(uri('bob')), { body: sdp('caller') })
    const result = srf.proxyRequest(await incoming.next(), [busy.uri, free.uri])
    busy.reply(await busy.next('INVITE'), 486, { tag: 'x' })
    free.reply(await free.next('INVITE'), 200, { tag: 'y', body: sdp('free') })
    await caller.next('200 INVITE')
    const { connected, finalStatus, responses } = await result
    expect({ connected, finalStatus }).toEqual({ connected: true, finalStatus: 200 })
    expect(responses.flatMap(({ msgs }) => msgs.map(({ status }) => status))).toEqual([486, 200])
  })
})
