/** Header and URI rules of carriers, as the other side of the wire sees them. */
import { expect, test } from 'vitest'
import { startEngine } from '../support/engine-on-sockets.ts'
import { eventually } from '../support/waiting.ts'

type Rule = Readonly<Record<string, string>>

const caller = '"Front desk" <sip:+4930100@pbx.example>'

/** Calls of a PBX to a carrier with these rules, and of that carrier to the PBX. */
const between = (rules: readonly Rule[], more: object = {}) =>
  startEngine(['pbx', 'carrier'], ({ pbx, carrier }) => ({
    rate_plans: [{ name: 'retail', currency: 'USD' }],
    rates: [{ rate_plan: 'retail', prefix: '', rate_per_minute: '0.10' }],
    customers: [{ name: 'acme', rate_plan: 'retail', numbers: ['+4930100'], balance: '50' }],
    dispatcher: [
      {
        endpoint_name: 'pbx',
        set_id: 1,
        algorithm: 8,
        nodes: [{ host: '127.0.0.1', internal_port: pbx }],
      },
    ],
    carriers: [
      {
        name: 'north',
        gateways: [{ host: '127.0.0.1', port: carrier }],
        header_rules: rules,
        inbound_set: 1,
        customer: 'acme',
        ...more,
      },
    ],
    outbound_routes: [{ name: 'all', prefix: '', carrier: 'north' }],
  }))

const outgoing = async (rules: readonly Rule[], headers: readonly string[] = [], more = {}) => {
  const { call } = await between(rules, more)
  return call('pbx', 'carrier', '4940200', { from: caller, headers })
}

test('each kind of outgoing rule writes what its carrier gets, in the order of the rules', async () => {
  const invite = await outgoing(
    [
      { do: 'set', header: 'From', part: 'host', value: 'sip.north.example' },
      { do: 'rewrite', header: 'From', part: 'user', pattern: '^\\+', replacement: '00' },
      {
        do: 'set',
        header: 'Request-URI',
        part: 'uri_parameter',
        parameter: 'user',
        value: 'phone',
      },
      { do: 'set', header: 'To', part: 'host', value: 'sip.north.example' },
      { do: 'set', header: 'To', part: 'uri_parameter', parameter: 'user', value: 'phone' },
      { do: 'copy', header: 'Remote-Party-ID', source: 'From' },
      {
        do: 'set',
        header: 'Remote-Party-ID',
        part: 'parameter',
        parameter: 'party',
        value: 'calling',
      },
      {
        do: 'set',
        header: 'Remote-Party-ID',
        part: 'parameter',
        parameter: 'screen',
        value: 'yes',
      },
      { do: 'remove', header: 'From', part: 'display_name' },
      { do: 'remove', header: 'P-Asserted-Identity' },
      { do: 'set', header: 'P-Preferred-Identity', part: 'user', value: '{presented}' },
      { do: 'set', header: 'X-Account', value: 'north-1' },
      { do: 'add', header: 'X-Account', value: 'north-2' },
      { do: 'set', header: 'X-Call', value: '{call_uuid} {caller} {called} {carrier} {customer}' },
    ],
    ['P-Asserted-Identity: <sip:+4930100@pbx.example>'],
  )
  expect(invite.uri).toMatch(/^sip:4940200@127\.0\.0\.1:\d+;transport=udp;user=phone$/)
  expect(invite.get('From')).toMatch(/^<sip:004930100@sip\.north\.example>;tag=/)
  expect(invite.get('To')).toBe('<sip:4940200@sip.north.example;user=phone>')
  expect(invite.get('Remote-Party-ID')).toBe(
    '"Front desk" <sip:004930100@sip.north.example>;party=calling;screen=yes',
  )
  expect(invite.all('P-Asserted-Identity')).toEqual([])
  expect(invite.get('P-Preferred-Identity')).toMatch(/^<sip:004930100@127\.0\.0\.1:\d+>$/)
  expect(invite.get('X-Account')).toBe('north-1, north-2')
  expect(invite.get('X-Call')).toMatch(/^[0-9a-f-]{36} \+4930100 4940200 north 1$/)
})

test('rules come after the caller number and after stripped headers', async () => {
  const invite = await outgoing(
    [
      {
        do: 'rewrite',
        header: 'P-Asserted-Identity',
        part: 'user',
        pattern: '^\\+49',
        replacement: '0',
      },
      { do: 'set', header: 'X-Diverted', value: 'was {header.diversion}!' },
    ],
    ['Diversion: <sip:+4930999@pbx.example>;reason=busy'],
    { caller_id: { mode: 'pai', value: '+4930777' }, strip_headers: ['Diversion'] },
  )
  expect(invite.get('P-Asserted-Identity')).toMatch(/^<sip:030777@/)
  expect(invite.all('Diversion')).toEqual([])
  expect(invite.all('X-Diverted')).toEqual([])
})

test('what a caller writes cannot begin a header, end an address, or reach a number', async () => {
  const evil = '"a\\" <sip:+1666@evil>, \\"b" <sip:+4930100@pbx.example>'
  const { call } = await between([
    { do: 'set', header: 'X-Name', value: 'name {header.from} end' },
    { do: 'set', header: 'Subject', value: 'call of {header.from}' },
    { do: 'set', header: 'Remote-Party-ID', part: 'user', value: '{presented}' },
    { do: 'copy', header: 'Remote-Party-ID', part: 'display_name', source: 'From' },
    { do: 'set', header: 'X-Folded', value: '{header.x-folded} end' },
  ])
  const invite = await call('pbx', 'carrier', '4940200', {
    from: evil,
    headers: ['X-Folded: one\r\n X-Evil: two', 'P-Asserted-Identity: <sip:+4930100@pbx.example>'],
  })
  expect(invite.all('X-Evil')).toEqual([])
  expect(invite.get('Subject')).not.toMatch(/[<>",;]/)
  expect(invite.get('Remote-Party-ID')).toMatch(
    /^"a\\" <sip:\+1666@evil>, \\"b" <sip:\+4930100@127\.0\.0\.1:\d+>$/,
  )
})

test('an INVITE of the carrier is read as its rules make it, and its source stays', async () => {
  const { call, engine, records } = await between([
    {
      direction: 'in',
      do: 'rewrite',
      header: 'From',
      part: 'user',
      pattern: '^00',
      replacement: '+',
    },
    { direction: 'in', do: 'copy', header: 'Request-URI', part: 'user', source: 'To' },
    { direction: 'in', do: 'set', header: 'X-Trunk', value: '{carrier} {source} {caller}' },
    { direction: 'in', do: 'remove', header: 'Subject' },
    {
      direction: 'in',
      do: 'set',
      header: 'P-Asserted-Identity',
      part: 'host',
      value: 'in.example',
    },
    { direction: 'out', do: 'set', header: 'X-Out', value: 'not here' },
  ])
  const invite = await call('carrier', 'pbx', '700', {
    from: '<sip:004988@north.example>',
    headers: ['Subject: secret', 'X-Other: does not pass'],
  })
  // The To of a peer is its Request-URI.
  expect(invite.uri).toMatch(/^sip:700@/)
  expect(invite.get('From')).toMatch(/^<sip:\+4988@/)
  expect(invite.get('X-Trunk')).toBe('north 127.0.0.1 004988')
  for (const name of ['Subject', 'X-Other', 'X-Out', 'P-Asserted-Identity'])
    expect([name, invite.all(name)]).toEqual([name, []])
  await eventually(() => records.length === 1)
  const [record] = records
  expect(record).toMatchObject({ callerNumber: '+4988', calledNumber: '700' })
  const trace = await engine.trace(record?.callUuid ?? '')
  const ruled = trace?.entries.filter(
    (entry) => entry.kind === 'decision' && entry.what === 'ruled',
  )
  expect(ruled).toMatchObject([{ detail: { direction: 'in', carrier: 'north', rules: [1, 3, 4] } }])
  const received = trace?.entries.find((entry) => entry.kind === 'message')
  expect(received).toMatchObject({ text: expect.stringContaining('<sip:004988@north.example>') })
})

test('the simulator shows the INVITE that the carrier gets, and the trace which rules changed it', async () => {
  const { call, engine, peers, records } = await between([
    { do: 'set', header: 'X-None', value: '{tag.absent}' },
    { do: 'set', header: 'From', part: 'host', value: 'sip.north.example' },
    { do: 'set', header: 'X-Called', value: '{called}' },
  ])
  const simulation = await engine.simulate({
    source: { kind: 'address', address: '127.0.0.1', port: peers.pbx.port },
    from: '+4930100',
    to: '4940200',
    callId: undefined,
    at: undefined,
    tenantId: null,
  })
  const [foreseen] = simulation?.candidates ?? []
  const invite = await call('pbx', 'carrier', '4940200', { from: '<sip:+4930100@pbx.example>' })
  expect(foreseen?.ruledBy).toEqual([2, 3])
  expect(foreseen?.invite?.uri).toBe(invite.uri)
  expect(foreseen?.invite?.headers).toMatchObject({
    From: invite.get('From').replace(/;tag=.*/, ''),
    'X-Called': invite.get('X-Called'),
  })
  await eventually(() => records.length === 1)
  const trace = await engine.trace(records[0]?.callUuid ?? '')
  expect(trace?.entries).toContainEqual(
    expect.objectContaining({
      what: 'ruled',
      detail: { direction: 'out', carrier: 'north', rules: [2, 3] },
    }),
  )
})

test('a rule that finds nothing, or would make no address, leaves the INVITE as it is', async () => {
  const rules = [
    { do: 'set', header: 'From', part: 'host', value: 'not a host' },
    { do: 'rewrite', header: 'From', part: 'user', pattern: '^\\d+$', replacement: '' },
    { do: 'remove', header: 'X-Absent' },
    { do: 'copy', header: 'X-Copy', source: 'X-Absent' },
    { do: 'set', header: 'X-Empty', value: '{tag.absent}' },
  ]
  const plain = await outgoing([])
  const ruled = await outgoing(rules)
  const headers = (text: string) =>
    text
      .split('\r\n')
      .map((line) => /^[\w-]+:/.exec(line)?.[0])
      .filter(Boolean)
  expect(headers(ruled.text)).toEqual(headers(plain.text))
  expect(ruled.get('From').replace(/;tag=.*|:\d+>/g, '')).toBe(
    plain.get('From').replace(/;tag=.*|:\d+>/g, ''),
  )
})
