/** Carriers below the floors of their routes, and exact shares, as calls over SIP meet them. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startEngine } from '../support/engine-on-sockets.ts'
import { sdp } from '../support/sip-peer.ts'
import { eventually } from '../support/waiting.ts'

const carriersAt = (ports: Readonly<Record<string, number>>, more: object = {}) =>
  Object.entries(ports).map(([name, port]) => ({
    name,
    gateways: [{ host: '127.0.0.1', port }],
    ...more,
  }))

const installation = (
  { pbx, ...carriers }: Readonly<Record<string, number>>,
  routes: object[],
) => ({
  rate_plans: [{ name: 'retail', currency: 'USD' }],
  rates: [{ rate_plan: 'retail', prefix: '', rate_per_minute: '0.10' }],
  customers: [{ name: 'acme', rate_plan: 'retail', numbers: ['4930100'], balance: '50' }],
  dispatcher: [
    {
      endpoint_name: 'pbx',
      set_id: 1,
      algorithm: 8,
      nodes: [{ host: '127.0.0.1', internal_port: pbx }],
    },
  ],
  carriers: carriersAt(carriers),
  outbound_routes: routes,
})

const from = '<sip:4930100@pbx.example>'

test('a carrier that fails goes last, says so, and comes back when its calls are good', async () => {
  const { engine, peers, ask } = await startEngine(['pbx', 'north', 'south'], (ports) =>
    installation(ports, [
      {
        name: 'first',
        prefix: '49',
        carrier: 'north',
        priority: 1,
        quality: { min_asr: 50, min_calls: 5 },
      },
      { name: 'second', prefix: '49', carrier: 'south', priority: 2 },
    ]),
  )
  const { pbx, north, south } = peers
  const events = () =>
    engine.events.after(0).flatMap((event) => (event.type.startsWith('carrier.') ? [event] : []))
  for (let call = 0; call < 5; call += 1) {
    expect(events()).toEqual([])
    ask('pbx', '4940200', from)
    north.reply(await north.next('INVITE'), 503, { tag: randomUUID() })
    south.reply(await south.next('INVITE'), 486, { tag: randomUUID() })
    await pbx.next(486)
  }
  expect(events()).toMatchObject([
    {
      type: 'carrier.quality_low',
      tenantId: null,
      by: null,
      quality: { route: 'first', carrier: 'north', fallen: { faults: ['asr'] } },
    },
  ])
  const simulated = await engine.simulate({
    source: { kind: 'address', address: '127.0.0.1', port: pbx.port },
    from: '4930100',
    to: '4940200',
    callId: undefined,
    at: undefined,
    tenantId: null,
  })
  expect(simulated?.candidates).toMatchObject([
    { route: 'second', lowQuality: null },
    { route: 'first', lowQuality: { carrier: 'north', fallen: { figures: { asr: 0 } } } },
  ])

  // The others fail now: the low one is still tried, and answers.
  for (let call = 0; call < 5; call += 1) {
    const uri = `sip:4940200@127.0.0.1:${engine.listeners[0]?.port ?? 0}`
    const leg = { ...pbx.leg(uri), from: `${from};tag=${randomUUID()}` }
    pbx.request('INVITE', leg, { body: sdp('caller') })
    south.reply(await south.next('INVITE'), 503, { tag: randomUUID() })
    north.reply(await north.next('INVITE'), 200, { tag: randomUUID(), body: sdp('north') })
    pbx.learn(leg, await pbx.next('200 INVITE'))
    pbx.request('ACK', leg)
    await north.next('ACK')
    pbx.request('BYE', leg)
    north.reply(await north.next('BYE'), 200)
    await pbx.next('200 BYE')
  }
  await eventually(() => expect(events()).toHaveLength(2))
  expect(events()[1]).toMatchObject({ type: 'carrier.quality_restored', by: 'measured' })
  ask('pbx', '4940200', from)
  north.reply(await north.next('INVITE'), 486, { tag: randomUUID() })
  await pbx.next(486)
})

test('of ten calls at 70 and 30 per cent seven and three reach the carriers', async () => {
  const { peers, ask, engine } = await startEngine(['pbx', 'north', 'south'], (ports) =>
    installation(ports, [
      { name: 'one', prefix: '49', carrier: 'north', weight: 70, distribution: 'percent' },
      { name: 'two', prefix: '49', carrier: 'south', weight: 30, distribution: 'percent' },
    ]),
  )
  const { pbx, north, south } = peers
  const request = {
    source: { kind: 'address', address: '127.0.0.1', port: pbx.port },
    from: '4930100',
    to: '4940200',
    callId: undefined,
    at: undefined,
    tenantId: null,
  } as const
  const reached = { north: 0, south: 0 }
  for (let call = 0; call < 10; call += 1) {
    const foreseen = await engine.simulate(request)
    expect(foreseen).toMatchObject({ order: 'turn' })
    const [next] = foreseen?.candidates ?? []
    const share = next?.route === 'one' ? 0.7 : 0.3
    expect(next?.share).toBeCloseTo(share, 5)
    ask('pbx', '4940200', from)
    const name = next?.route === 'one' ? 'north' : 'south'
    const peer = name === 'north' ? north : south
    peer.reply(await peer.next('INVITE'), 486, { tag: randomUUID() })
    reached[name] += 1
    await pbx.next(486)
  }
  expect(reached).toEqual({ north: 7, south: 3 })
})
