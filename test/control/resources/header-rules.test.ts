import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'

const path = '/api/v1/routing/carriers'
const rules = [
  { direction: 'out', do: 'set', header: 'From', part: 'host', value: 'sip.example.com' },
  { direction: 'in', do: 'set', header: 'X-Trunk', part: 'value', value: '{carrier}' },
]
const body = (header_rules: readonly object[], more: object = {}) => ({
  name: 'north',
  gateways: [{ host: '192.0.2.1' }],
  header_rules,
  ...more,
})

test('a carrier has rules in the order in which they are written, and a change is undone', async () => {
  const { call } = await openResources()
  const created = await call('POST', path, body(rules))
  expect(created.data()).toMatchObject({ header_rules: rules })
  const { id } = created.data<{ id: number }>()
  const [first] = rules
  const changed = await call('PATCH', `${path}/${id}`, { header_rules: [first] })
  expect(changed.data()).toMatchObject({ header_rules: [first] })
  await call('POST', `/api/v1/changes/${changed.headers.get('x-change-id') ?? ''}/undo`, {
    reason: 'test',
  })
  const after = await call('GET', `${path}/${id}`)
  expect(after.data()).toMatchObject({ header_rules: rules })
})

const set = { do: 'set', header: 'X-A', value: 'a' }
const owned = 'belongs to the SIP server: a rule cannot write it'

test.each([
  ['Identity', { ...set, header: 'Identity' }, 'header', `Identity ${owned}`],
  ['Date', { ...set, header: 'date' }, 'header', `date ${owned}`],
  ['Via', { ...set, header: 'VIA' }, 'header', `VIA ${owned}`],
  [
    'a short form',
    { ...set, header: 'y' },
    'header',
    'is a short form: write the name of the header',
  ],
  ['no name', { ...set, header: 'X A' }, 'header', 'is no name of a header'],
  ['a header in a name', { ...set, header: 'X-A: b\r\nX' }, 'header', 'is no name of a header'],
  [
    'the called number',
    { ...set, header: 'Request-URI', part: 'user' },
    'part',
    'an outgoing rule cannot write the called number or where the call goes',
  ],
  [
    'the called number in To',
    { ...set, header: 'To', part: 'user' },
    'part',
    'an outgoing rule cannot write the called number',
  ],
  [
    'From as a whole',
    { ...set, header: 'From' },
    'part',
    'is required: From cannot be written whole, or removed',
  ],
  [
    'a tag',
    { ...set, header: 'From', part: 'parameter', parameter: 'tag' },
    'parameter',
    'tag belongs to the SIP server',
  ],
  [
    'a transport',
    { ...set, header: 'Request-URI', part: 'uri_parameter', parameter: 'transport' },
    'parameter',
    'transport belongs to the SIP server',
  ],
  [
    'a line break',
    { ...set, value: 'a\r\nX-Evil: b' },
    'value',
    'has a line break or a control character',
  ],
  ['an open brace', { ...set, value: 'a{' }, 'value', 'has a brace that is no part of a variable'],
  ['no value', { do: 'set', header: 'X-A' }, 'value', 'is required'],
  ['a useless field', { ...set, pattern: 'a' }, 'pattern', 'has no effect with "set"'],
  [
    'no source',
    { do: 'copy', header: 'X-A' },
    'source',
    'is required: the header that has the part',
  ],
  [
    'a password',
    { do: 'copy', header: 'X-A', source: 'Authorization' },
    'source',
    'Authorization is nobody’s business',
  ],
  [
    'a foreign number',
    { do: 'copy', header: 'P-Asserted-Identity', part: 'value', source: 'X-A' },
    'source',
    'X-A may hold any number: the number shown is decided before',
  ],
  [
    'a number of the caller',
    { ...set, header: 'From', part: 'user', value: '{header.x-a}' },
    'value',
    'may hold no variable but {presented}: the number shown is decided before',
  ],
  [
    'an endless pattern',
    { do: 'rewrite', header: 'X-A', pattern: '(a+)+$' },
    'pattern',
    'pattern repeats a group that has a group, a repetition, ^ or $ inside, at position 5',
  ],
  [
    'a missing group',
    { do: 'rewrite', header: 'X-A', pattern: 'a', replacement: '$1' },
    'replacement',
    'replacement refers to $1, the pattern has 0 groups',
  ],
])('a rule with %s is refused', async (_, rule, field, message) => {
  const { call } = await openResources()
  const answer = await call('POST', path, body([set, rule]))
  expect(answer.body).toMatchObject({
    statusCode: 400,
    details: [{ path: `header_rules.1.${field}`, message }],
  })
})

test('an unknown variable is refused with those that are known', async () => {
  const { call } = await openResources()
  const answer = await call('POST', path, body([{ ...set, value: '{secret}' }]))
  expect(answer.body).toMatchObject({
    details: [
      {
        message:
          'has the unknown variable {secret}; known are {call_uuid} {caller} {called} {carrier} ' +
          '{customer} {rn} {header.NAME} {presented} {tag.NAME}',
      },
    ],
  })
})

test('a carrier has at most 64 rules, and their patterns a bound together', async () => {
  const { call } = await openResources()
  const many = (count: number) => Array.from({ length: count }, () => set)
  expect((await call('POST', path, body(many(65)))).status).toBe(400)
  expect((await call('POST', path, body(many(64)))).status).toBe(201)
  const large = { do: 'rewrite', header: 'X-A', pattern: 'a{64}b{64}c{64}d{64}e{64}f{64}g{64}' }
  const answer = await call('POST', path, body(Array.from({ length: 3 }, () => large)))
  expect(answer.body).toMatchObject({
    details: [
      {
        path: 'header_rules',
        message: 'the patterns have 1353 steps together, the most is 1024',
      },
    ],
  })
})

test('a tenant writes rules of its own carriers only', async () => {
  const { call, callAs } = await openResources()
  for (const slug of ['acme', 'nova']) await call('POST', '/api/v1/tenants', { slug, name: slug })
  const made = await call('POST', path, body([], { tenant: 'acme' }))
  const { id } = made.data<{ id: number }>()
  expect((await callAs('nova', 'PATCH', `${path}/${id}`, { header_rules: rules })).status).toBe(404)
  expect((await callAs('acme', 'PATCH', `${path}/${id}`, { header_rules: rules })).status).toBe(200)
})
