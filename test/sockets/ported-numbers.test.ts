/** Calls to ported numbers (RFC 4694), and what was verified about callers, from outside. */
import { expect, test } from 'vitest'
import { startEngine } from '../support/engine-on-sockets.ts'
import { eventually } from '../support/waiting.ts'

const rates = [
  ['1212', '0.01'],
  ['1809', '0.90'],
  ['1', '0.10'],
  ['1976', '0'],
  ['7', '0.01'],
].map(([prefix, rate_per_minute]) => ({
  rate_plan: 'retail',
  prefix,
  rate_per_minute,
  blocked: prefix === '1976',
}))

const between = (plan: object = {}, north: object = {}) =>
  startEngine(
    ['pbx', 'carrier', 'transit', 'emergency'],
    ({ pbx, carrier, transit, emergency }) => ({
      rate_plans: [{ name: 'retail', currency: 'USD', ...plan }],
      rates,
      customers: [{ name: 'acme', rate_plan: 'retail', numbers: ['+12025550100'], balance: '50' }],
      dispatcher: [
        {
          endpoint_name: 'pbx',
          set_id: 1,
          algorithm: 8,
          nodes: [{ host: '127.0.0.1', internal_port: pbx }],
        },
      ],
      carriers: [
        { name: 'north', gateways: [{ host: '127.0.0.1', port: carrier }], ...north },
        { name: 'help', direction: 'out', gateways: [{ host: '127.0.0.1', port: emergency }] },
        { name: 'transit', customer: 'acme', gateways: [{ host: '127.0.0.1', port: transit }] },
      ],
      outbound_routes: [
        { name: 'all', prefix: '', carrier: 'north' },
        { name: 'none', prefix: '1900', mode: 'block' },
        { name: 'emergency', prefix: '112', carrier: 'help', emergency: true },
      ],
      inbound_routes: [{ name: 'in', prefix: '', set: 1 }],
    }),
  )

const from = '<sip:+12025550100@pbx.example>'

const uriOf = async (dialled: string, rig?: Awaited<ReturnType<typeof between>>) => {
  const { call } = rig ?? (await between())
  const invite = await call('pbx', 'carrier', dialled, { from })
  return invite.uri.replace(/@127\.0\.0\.1:\d+/, '@h')
}

test('parameters of the called number pass to a carrier as they came', async () => {
  const rig = await between()
  const shown: [string, string][] = [
    ['+18095550100;npdi', ';npdi'],
    ['+18095550100;npdi;rn=+12125550000', ';npdi;rn=+12125550000'],
    ['+18095550100;rn=2125550000;rn-context=+1', ';rn=2125550000;rn-context=+1'],
    ['+18095550100;cic=+1-6789', ';cic=+1-6789'],
    ['+18095550100;cic=6789;cic-context=example.com', ';cic=6789;cic-context=example.com'],
    ['+18095550100;isub=12%3B3', ''],
    ['+18095550100;isub=1411', ';isub=1411'],
    ['+18095550100;NPDI;RN=+12125550000;ext=23', ';ext=23;npdi;rn=+12125550000'],
    ['+18095550100;r%6e=%2B12125550000', ';rn=+12125550000'],
    ['+18095550100;npdi;rn=D1460', ';npdi;rn=D1460'],
    // Two readers could read two things.
    ['+18095550100;rn=+12125550000;rn=+19005550000', ''],
    ['+18095550100;rn=$evil', ''],
    ['+18095550100;verstat=TN-Validation-Passed;phone-context=+44', ''],
    ['tel:+18095550100;npdi;rn=+12125550000', ';npdi;rn=+12125550000'],
  ]
  for (const [dialled, parameters] of shown) {
    const phone = parameters === '' ? '' : ';user=phone'
    expect([dialled, await uriOf(dialled, rig)]).toEqual([
      dialled,
      `sip:+18095550100${parameters}@h;transport=udp${phone}`,
    ])
  }
})

/** The prefix by which a call is priced, or the status with which it is refused. */
async function priced(rig: Awaited<ReturnType<typeof between>>, dialled: string) {
  const before = rig.records.length
  await rig.call('pbx', 'carrier', dialled, { from })
  await eventually(() => rig.records.length > before)
  return rig.records.at(-1)?.ratePrefix
}

test('a plan prices by the dialled number, whatever the parameters say', async () => {
  const rig = await between()
  for (const parameters of ['', ';npdi', ';rn=+12125550000', ';npdi;rn=+12125550000'])
    expect([parameters, await priced(rig, `+18095550100${parameters}`)]).toEqual([
      parameters,
      '1809',
    ])
})

test('a plan by routing numbers prices by them where they are numbers, and else by the dialled one', async () => {
  const rig = await between({ priced_by: 'rn' })
  const expected: [string, string][] = [
    ['', '1809'],
    [';npdi', '1809'],
    [';npdi;rn=+12125550000', '1212'],
    [';rn=+1-212-555-0000', '1212'],
    [';rn=2125550000;rn-context=+1', '1212'],
    [';rn=D1460', '1809'],
    [';rn=', '1809'],
    [';rn=+12125550000;rn=+12125550000', '1809'],
    ['%3Brn=+12125550000', 'refused'],
  ]
  for (const [parameters, prefix] of expected)
    if (prefix === 'refused')
      expect(await rig.refused('pbx', `+18095550100${parameters}`, from)).toBe(404)
    else
      expect([parameters, await priced(rig, `+18095550100${parameters}`)]).toEqual([
        parameters,
        prefix,
      ])
  // The plan has no price for that routing number.
  expect(await rig.refused('pbx', '+12125550100;rn=+4930100', from)).toBe(402)
})

test('a block holds for the dialled number and for the routing number', async () => {
  for (const plan of [{}, { priced_by: 'rn' }]) {
    const rig = await between(plan)
    const blocked = ['+19765550100;rn=+12125550000', '+12125550000;rn=+19765550100']
    const routes = ['+19005550100;npdi;rn=+12125550000', '+12125550000;npdi;rn=+19005550100']
    for (const dialled of blocked)
      expect([dialled, await rig.refused('pbx', dialled, from)]).toEqual([dialled, 402])
    for (const dialled of routes)
      expect([dialled, await rig.refused('pbx', dialled, from)]).toEqual([dialled, 403])
  }
})

test('an emergency call carries no routing number, and none hides in another call', async () => {
  const rig = await between()
  const invite = await rig.call('pbx', 'emergency', '112;npdi;rn=+19005550100', { from })
  expect(invite.uri).toMatch(/^sip:112@[\d.:]+;transport=udp$/)
  expect(await rig.refused('pbx', '+12125550000;rn=112', from)).toBe(403)
})

const passed = 'TN-Validation-Passed'

test.each([
  ['From', `<sip:+12025550177;verstat=${passed}@c.example;user=phone>`, undefined],
  ['From', `<sip:+12025550177@c.example;verstat=${passed}>`, undefined],
  ['P-Asserted-Identity', '<sip:100@c.example>', `<tel:+12025550177;verstat=${passed}>`],
])(
  'what a carrier has verified passes beside the number (%s: %s)',
  async (name, claimed, asserted) => {
    const { call } = await between()
    const headers = asserted === undefined ? [] : [`P-Asserted-Identity: ${asserted}`]
    const invite = await call('carrier', 'pbx', '700', { from: claimed, headers })
    expect(invite.get(name)).toContain(`+12025550177;verstat=${passed}`)
    const shown = [...invite.all('From'), ...invite.all('P-Asserted-Identity')].join()
    expect(shown.match(/verstat/g)).toHaveLength(1)
  },
)

test.each([
  ['From of a customer', 'transit', `<sip:+12025550100;verstat=${passed}@c.example>`, undefined],
  ['From of a PBX', 'pbx', `<sip:+12025550100;verstat=${passed}@c.example>`, undefined],
  ['a name', 'carrier', `<sip:alice;verstat=${passed}@c.example>`, undefined],
  ['no known value', 'carrier', '<sip:+12025550177;verstat=Surely@c.example>', undefined],
  [
    'the asserted one of a customer',
    'transit',
    '<sip:1@c.example>',
    `<sip:+12025550100@h;verstat=${passed}>`,
  ],
  [
    'two of a customer',
    'transit',
    '<sip:1@h>',
    `<sip:+12025550100;VERSTAT=${passed}@h>, <tel:+12025550100;verstat=${passed}>`,
  ],
] as const)('verstat of others is removed: %s', async (_, source, claimed, asserted) => {
  const { call } = await between()
  const headers = asserted === undefined ? [] : [`P-Asserted-Identity: ${asserted}`]
  const isOut = source === 'pbx'
  const invite = await call(source, isOut ? 'carrier' : 'pbx', isOut ? '+12125550000' : '700', {
    from: claimed,
    headers,
  })
  expect(invite.text).not.toMatch(/verstat/i)
})
