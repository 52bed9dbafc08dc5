/** Decks as carriers send them, through the API. */
import { expect, test } from 'vitest'
import type { WrittenMapping } from '../../../../control/resources/decks/deck-mapping.ts'
import { deckFixtures } from '../../../support/deck-fixtures.ts'
import { openResources } from '../../../support/resources.ts'
import { archive, workbook } from '../../../support/workbook.ts'

const bytes = { headers: { 'content-type': 'application/octet-stream' } }

type Step = '' | '/preview' | '/diff'

async function withPlan(currency = 'USD') {
  const control = await openResources()
  await control.call('POST', '/rate-plans', { name: 'cost', currency })
  const send = (step: Step, deck: string | Buffer, query: object = {}, mapping?: object) => {
    const words = new URLSearchParams({
      rate_plan: 'cost',
      ...query,
      ...(mapping !== undefined && { mapping: JSON.stringify(mapping) }),
    })
    return control.call('POST', `/rates/decks${step}?${words.toString()}`, deck, bytes)
  }
  const rates = async (plan = 'cost') =>
    (await control.call('GET', `/rates?rate_plan=${plan}&limit=200`)).data<
      { prefix: string; rate_per_minute_exact: string; effective_to: string | null }[]
    >()
  const prices = async () =>
    Object.fromEntries((await rates()).map((rate) => [rate.prefix, rate.rate_per_minute_exact]))
  return { ...control, send, rates, prices }
}

const code = { columns: { prefix: 'Code', rate_per_minute: 'Rate' } }

test.each(deckFixtures)('imports right at the first try: $name', async (deck) => {
  const text = deck.bytes.toString('latin1')
  const control = await withPlan(
    text.includes('\u0080') ? 'EUR' : text.includes('COP') ? 'COP' : 'USD',
  )
  const preview = await control.send('/preview', deck.bytes)
  const { mapping, mapping_source } = preview.data<{
    mapping: WrittenMapping
    mapping_source: string
  }>()
  expect(mapping_source).toBe('proposed')
  const answer = await control.send('', deck.bytes, {}, { ...mapping, ...deck.said })
  expect(answer.body).toMatchObject({ data: { created: Object.keys(deck.rates).length } })
  const stored = await control.prices()
  const inCents = Object.fromEntries(
    Object.entries(deck.rates).map(([prefix, price]) => [prefix, Number(price)]),
  )
  expect(
    Object.fromEntries(Object.entries(stored).map(([p, price]) => [p, Number(price)])),
  ).toEqual(inCents)
  if (deck.first !== undefined) expect((await control.rates())[0]).toMatchObject(deck.first)
})

test.each([
  ['44792.0', 'is a decimal number'],
  ['4.4', 'is a decimal number'],
  ['4.4E+11', 'its digits are lost'],
  ['44792-449', 'different lengths'],
  ['449-447', 'ends before it begins'],
  ['447-549', 'do not begin alike'],
  ['44-', 'neither a prefix nor a range'],
  ['44(0)20', 'is not a prefix'],
  ['0791', 'begins with 0'],
  ['7401 7402', 'spaces between groups'],
  ['447, 33', 'do not begin alike'],
  ['4477/8', 'do not begin alike'],
  ['Total', 'is a line of totals or averages'],
])('the prefix %j is refused with its line and advice', async (prefix, message) => {
  const { send, rates } = await withPlan()
  const answer = await send('', `Code,Rate\n49,0.10\n"${prefix}",0.20\n`, {}, code)
  expect(answer.body).toMatchObject({
    statusCode: 400,
    error: '1 line is not valid',
    details: [
      { path: expect.stringMatching(/^lines\.3/), message: expect.stringContaining(message) },
    ],
  })
  expect(await rates()).toEqual([])
})

test.each([
  ['447-449', ['447', '448', '449']],
  ['447 - 449', ['447', '448', '449']],
  ['4479200-4479299', ['44792']],
  ['4479195-4479210', ['4479195', '4479196', '4479197', '4479198', '4479199', '447920', '4479210']],
  ['="0044792"', ['44792']],
  ["'44792", ['44792']],
  ['+44 79 2', ['44792']],
  ['0044792', ['44792']],
  ['441, 442;443', ['441', '442', '443']],
])('the prefix %j is read as %j', async (prefix, expected) => {
  const { send, prices } = await withPlan()
  const answer = await send('', `Code;Rate\n"${prefix.replaceAll('"', '""')}";0.20\n`, {}, code)
  expect(answer.body).toMatchObject({ success: true })
  expect(Object.keys(await prices()).toSorted()).toEqual(expected.toSorted())
})

test.each([
  ['0.0125', {}, 0.0125],
  ['.0125', {}, 0.0125],
  ['0.01250000', {}, 0.0125],
  ['0,0125', { decimal: ',' }, 0.0125],
  ['1.234,5', { decimal: ',', thousands: '.' }, 1234.5],
  ['1,234.5', { thousands: ',' }, 1234.5],
  ["1'234.5", { thousands: "'" }, 1234.5],
  ['1 234,5', { decimal: ',', thousands: ' ' }, 1234.5],
  ['$0.0125', {}, 0.0125],
  ['0.0125 USD', {}, 0.0125],
  ['0.01234567', { more_decimals: 'up' }, 0.012346],
  ['0.01234567', { more_decimals: 'down' }, 0.012345],
  ['0.0123454', { more_decimals: 'nearest' }, 0.012345],
])('the price %j is read with %j as %d', async (price, said, expected) => {
  const { send, prices } = await withPlan()
  const answer = await send('', `Code\tRate\n49\t${price}\n`, {}, { ...code, ...said })
  expect(answer.body).toMatchObject({ success: true })
  expect(Number((await prices())['49'])).toBe(expected)
})

test.each([
  ['0,0125', {}, 'has a comma'],
  ['0.0125', { decimal: ',' }, 'has a point'],
  ['0.012', { decimal: ',', thousands: '.' }, 'has a point'],
  ['0.01234567', {}, 'has 8 decimals'],
  ['1,25E-2', {}, 'exponent'],
  ['0.01 EUR', {}, 'is in EUR, the rate plan in USD'],
  ['-0.01', {}, 'is below zero'],
  ['n/a', {}, 'is not an amount'],
  ['', {}, 'is required'],
])('the price %j with %j is refused, never guessed', async (price, said, message) => {
  const { send } = await withPlan()
  const answer = await send('', `Code;Rate\n49;${price}\n`, {}, { ...code, ...said })
  expect(answer.body).toMatchObject({
    details: [{ path: 'lines.2.rate_per_minute', message: expect.stringContaining(message) }],
  })
})

test('dates are read in the format that is named, in the zone that is named, or refused', async () => {
  const { send, rates } = await withPlan()
  const columns = { ...code.columns, effective_from: 'From' }
  const deck = 'Code;Rate;From\n49;0.1;03/04/2026\n'
  const read = async (said: object) => {
    const answer = await send('', deck, {}, { columns, ...said })
    return answer.status === 200 ? (await rates()).at(-1) : answer.body
  }
  expect(await read({})).toMatchObject({
    details: [{ path: 'lines.2.effective_from', message: expect.stringContaining('date_format') }],
  })
  expect(await read({ date_format: 'D/M/YYYY' })).toMatchObject({
    effective_from: '2026-04-03T00:00:00.000Z',
  })
  // Daylight saving time has begun there.
  expect(await read({ date_format: 'DD/MM/YYYY', time_zone: 'Europe/Berlin' })).toMatchObject({
    effective_from: '2026-04-03T00:00:00.000Z',
  })
  expect((await rates()).map((rate) => rate)).toMatchObject([
    { effective_from: '2026-04-02T22:00:00.000Z' },
    { effective_from: '2026-04-03T00:00:00.000Z' },
  ])
  expect(await read({ date_format: 'YYYY.MM.DD' })).toMatchObject({ statusCode: 400 })
})

test('a line of totals is refused by its number, and left out when it is named', async () => {
  const { send, prices } = await withPlan()
  const deck = 'Code,Name,Rate\n49,Germany,0.1\n,Average,0.05\nTotal,1,0.1\n'
  const refused = await send('', deck, {}, code)
  expect(refused.body).toMatchObject({
    details: [{ path: 'lines.3' }, { path: 'lines.4' }],
  })
  const empty = await send('', 'Code,Name,Rate\n,Everything,0.05\n', {}, code)
  expect(empty.body).toMatchObject({ details: [{ path: 'lines.2.prefix' }] })
  const taken = await send('', deck, {}, { ...code, skip_lines: [3, 4] })
  expect(taken.data()).toMatchObject({ skipped: 2, created: 1 })
  expect(await prices()).toEqual({ 49: '0.10' })
})

test('a line twice counts once, with other terms it is refused', async () => {
  const { send } = await withPlan()
  const same = await send('', 'Code,Rate\n49,0.1\n49,0.10\n', {}, code)
  expect(same.data()).toMatchObject({ repeated: 1, warnings: [expect.stringContaining('twice')] })
  const other = await send('', 'Code,Rate\n49,0.1\n48,1\n49,0.2\n', {}, code)
  expect(other.body).toMatchObject({
    details: [{ path: 'lines.4.prefix', message: 'repeats "49" of line 2 with other terms' }],
  })
})

test('nothing is imported without a mapping, and the plan remembers one', async () => {
  const { send, call, prices } = await withPlan()
  const deck = 'Code,Rate\n49,0.1\n'
  expect((await send('', deck)).body).toMatchObject({ details: [{ path: 'mapping' }] })
  const wrong = await call('PATCH', '/rate-plans/1', { deck_mapping: { columns: {} } })
  expect(wrong.status).toBe(400)
  const kept = await call('PATCH', '/rate-plans/1', { deck_mapping: code })
  expect(kept.data()).toMatchObject({ deck_mapping: code })
  expect((await send('/preview', deck)).data()).toMatchObject({ mapping_source: 'remembered' })
  expect((await send('', deck)).data()).toMatchObject({ created: 1 })
  expect(await prices()).toEqual({ 49: '0.10' })
})

test('the plan of a carrier is found by the carrier', async () => {
  const { call, prices } = await withPlan()
  await call('POST', '/routing/carriers', {
    name: 'north',
    rate_plan: 'cost',
    gateways: [{ host: '192.0.2.1' }],
  })
  await call('POST', '/routing/carriers', { name: 'south', gateways: [{ host: '192.0.2.2' }] })
  const words = (carrier: string) =>
    new URLSearchParams({ carrier, mapping: JSON.stringify(code) }).toString()
  const sent = await call('POST', `/rates/decks?${words('north')}`, 'Code,Rate\n49,0.1\n', bytes)
  expect(sent.status).toBe(200)
  expect(await prices()).toEqual({ 49: '0.10' })
  const none = await call('POST', `/rates/decks?${words('south')}`, 'Code,Rate\n49,0.1\n', bytes)
  expect(none.body).toMatchObject({ statusCode: 400, details: [{ path: 'carrier' }] })
})

test('a diff says what becomes new, dearer, cheaper and gone, and changes nothing', async () => {
  const { send, prices } = await withPlan()
  await send('', 'Code,Rate\n1,0.01\n33,0.02\n44,0.02\n49,0.10\n', {}, code)
  const before = await prices()
  const deck = 'Code,Rate\n1,0.01\n33,0.01\n44,0.03\n48,0.05\n'
  const diff = await send('/diff', deck, { mode: 'replace' }, code)
  expect(diff.data()).toMatchObject({
    changes: { new: 1, dearer: 1, cheaper: 1, changed: 0, same: 1, gone: 1 },
    short_notice: 1,
    warnings: [expect.stringContaining("less than 7 days' notice; the first is on line 4")],
    rates: [
      { kind: 'new', prefix: '48', before_exact: null, after_exact: '0.05', percent: null },
      { kind: 'dearer', prefix: '44', before_exact: '0.02', after_exact: '0.03', percent: 50 },
      { kind: 'cheaper', prefix: '33', percent: -50, line: 3 },
      { kind: 'gone', prefix: '49', before_exact: '0.10', after_exact: null, line: null },
    ],
  })
  const cheaper = await send('/diff', deck, { show: 'cheaper' }, code)
  expect(cheaper.body).toHaveProperty('data.rates.length', 1)
  expect(await prices()).toEqual(before)
})

test('a diff names the customers that the deck makes a loss with', async () => {
  const { send, call, request, key } = await withPlan()
  await call('POST', '/rate-plans', { name: 'retail', currency: 'USD' })
  await call('POST', '/rates', { rate_plan: 'retail', prefix: '44', rate_per_minute: 0.03 })
  await call('POST', '/rates', { rate_plan: 'retail', prefix: '447', rate_per_minute: 0.01 })
  await call('POST', '/customers', { name: 'Acme', rate_plan: 'retail' })
  await call('POST', '/routing/carriers', {
    name: 'north',
    rate_plan: 'cost',
    gateways: [{ host: '192.0.2.1' }],
  })
  await send('', 'Code,Rate\n44,0.02\n', {}, code)
  const losses = async (deck: string) =>
    (await send('/diff', deck, {}, code)).data<{ losses: object }>().losses
  expect(await losses('Code,Rate\n44,0.025\n')).toMatchObject({ customers: 0 })
  expect(await losses('Code,Rate\n44,0.04\n')).toMatchObject({
    customers: 1,
    is_complete: true,
    shown: [
      {
        customer: 'Acme',
        rate_plan: 'retail',
        prefix: '44',
        sold_exact: '0.03',
        cost_exact: '0.04',
      },
    ],
  })
  const token = await key({ scopes: ['rates:write'] })
  const words = new URLSearchParams({ rate_plan: 'cost', mapping: JSON.stringify(code) })
  const hidden = await request(`/api/v1/rates/decks/diff?${words.toString()}`, {
    ...bytes,
    method: 'POST',
    token,
    body: 'Code,Rate\n44,0.04\n',
  })
  expect(hidden.data()).toMatchObject({ losses: { customers: 1, shown: [] } })
})

test('a deck of next month leaves the prices of today, and ends what it does not have', async () => {
  const { send, rates, call, now } = await withPlan()
  await send('', 'Code,Rate\n44,0.02\n49,0.10\n', {}, code)
  const start = new Date(now() + 30 * 86_400_000).toISOString()
  const mapping = { ...code, effective_from: start }
  const diff = await send('/diff', 'Code,Rate\n44,0.03\n', { mode: 'replace' }, mapping)
  expect(diff.data()).toMatchObject({ short_notice: 0, changes: { dearer: 1, gone: 1 } })
  await send('', 'Code,Rate\n44,0.03\n', { mode: 'replace' }, mapping)
  expect(await rates()).toMatchObject([
    { prefix: '44', rate_per_minute_exact: '0.02', effective_from: null },
    { prefix: '44', rate_per_minute_exact: '0.03', effective_from: start },
    { prefix: '49', effective_to: start },
  ])
  const price = await call('GET', '/rates/lookup?rate_plan=cost&number=44123')
  expect(price.data()).toMatchObject({ rate_per_minute: 0.02 })
})

test('an import is undone as it was, unless a rate was changed since', async () => {
  const { send, rates, call } = await withPlan()
  await send('', 'Code,Rate\n1,0.01\n44,0.02\n49,0.10\n', {}, code)
  const before = (await rates()).map(({ prefix, rate_per_minute_exact }) => [
    prefix,
    rate_per_minute_exact,
  ])
  const second = await send(
    '',
    'Code,Rate\n44,0.03\n48,0.05\n',
    { mode: 'replace', file_name: 'b.csv' },
    code,
  )
  expect(second.data()).toMatchObject({ id: 2, created: 1, updated: 1, removed: 2 })
  expect((await call('POST', '/rates/decks/1/undo')).body).toMatchObject({ code: 'later_deck' })
  const undone = await call('POST', '/rates/decks/2/undo')
  expect(undone.data()).toEqual({ id: 2, restored: 4 })
  expect(
    (await rates()).map(({ prefix, rate_per_minute_exact }) => [prefix, rate_per_minute_exact]),
  ).toEqual(before)
  expect((await call('POST', '/rates/decks/2/undo')).body).toMatchObject({ code: 'already_undone' })
  const [newest, first] = (await call('GET', '/rates/decks?rate_plan_id=1')).data<object[]>()
  expect(newest).toMatchObject({ id: 2, file_name: 'b.csv', undone_by: expect.any(String) })
  expect(first).toMatchObject({ id: 1, undone_at: null })
  const { id } = (await call('GET', '/rates?search=49')).data<{ id: number }[]>()[0] ?? { id: 0 }
  await call('PATCH', `/rates/${id}`, { rate_per_minute: 1 })
  const refused = await call('POST', '/rates/decks/1/undo')
  expect(refused.body).toMatchObject({ statusCode: 409, code: 'changed_since' })
  expect(refused.body).toMatchObject({ error: expect.stringContaining('those of 49') })
  expect((await call('POST', '/rates/decks/9/undo')).status).toBe(404)
})

test.each([
  ['an archive that is no workbook', archive([{ name: 'a.txt', text: 'x' }]), 'cannot be read'],
  ['a damaged workbook', workbook([['Code', 'Rate']]).subarray(0, 300), 'is damaged'],
  [
    'an archive that unpacks to very much',
    archive([{ name: 'xl/workbook.xml', text: Buffer.alloc(120_000_000, 32) }]),
    'too large when it is unpacked',
  ],
  ['a cell very far away', farCell(), 'rows: save it as CSV'],
  ['an old workbook', Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 1, 2]), 'save it as .xlsx'],
  ['a PDF', Buffer.from('%PDF-1.7'), 'is a PDF'],
  ['nothing', Buffer.alloc(0), 'is empty'],
])('%s is refused before it is read', async (_, deck, message) => {
  const { send } = await withPlan()
  const answer = await send('', deck, {}, code)
  expect(answer.body).toMatchObject({ statusCode: 400, error: expect.stringContaining(message) })
})

function farCell(): Buffer {
  const sheet =
    '<worksheet><sheetData><row r="1048576"><c r="A1048576"><v>1</v></c></row></sheetData></worksheet>'
  return archive([{ name: 'xl/worksheets/sheet1.xml', text: sheet }])
}

test('another type, and a mapping that is not valid, are refused', async () => {
  const { send, call } = await withPlan()
  const other = await call('POST', '/rates/decks?rate_plan=cost', '{}', {
    headers: { 'content-type': 'application/json' },
  })
  expect(other.status).toBe(415)
  const wrong = await send('', 'Code,Rate\n1,1\n', {}, { ...code, decimal: ';' })
  expect(wrong.body).toMatchObject({ details: [{ path: 'mapping.decimal' }] })
  const numbers = { columns: { prefix: 1, rate_per_minute: 2 } }
  const noHeader = await send('', '49,0.1\n', {}, numbers)
  expect(noHeader.body).toMatchObject({ details: [{ path: 'mapping.header_line' }] })
  const taken = await send('', '49,0.1\n', {}, { ...numbers, header_line: 0 })
  expect(taken.data()).toMatchObject({ created: 1 })
})

test('a tenant sees and imports the decks of its own plans alone', async () => {
  const { send, callAs, tenant } = await withPlan()
  await tenant('acme')
  await send('', 'Code,Rate\n49,0.1\n', {}, code)
  expect((await callAs('acme', 'GET', '/rates/decks')).data()).toEqual([])
  expect((await callAs('acme', 'POST', '/rates/decks/1/undo')).status).toBe(404)
})
