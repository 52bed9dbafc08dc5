import { expect, test } from 'vitest'
import { csvLine, parseCsv } from '../../../control/resources/rate-import.ts'
import { openResources } from '../../support/resources.ts'

const csv = { 'content-type': 'text/csv' }

async function withPlan() {
  const control = await openResources()
  await control.call('POST', '/rate-plans', { name: 'default', currency: 'EUR' })
  const send = (body: string, query = '') =>
    control.call('POST', `/api/v1/rates/import?rate_plan=default${query}`, body, { headers: csv })
  const prefixes = async () =>
    (await control.call('GET', '/rates?limit=200'))
      .data<{ prefix: string }[]>()
      .map(({ prefix }) => prefix)
  return { ...control, send, prefixes }
}

test('a table of rates is imported, in any order of columns, and holds from the next call on', async () => {
  const { send, call } = await withPlan()
  const answer = await send(
    'rate_per_minute,prefix,description,blocked,increment,effective_from\r\n' +
      '0.10,+49,"Germany, all",no,6,\r\n' +
      '0.5,4915,"""mobile""",,,2025-01-01T00:00:00Z\r\n' +
      '\r\n' +
      '0,49900,,yes,,\r\n',
  )
  expect(answer.data()).toEqual({ imported: 3, created: 3, updated: 0, removed: 0 })
  expect((await call('GET', '/rates')).data()).toMatchObject([
    { prefix: '49', description: 'Germany, all', increment: 6, blocked: false },
    { prefix: '4915', description: '"mobile"', effective_from: '2025-01-01T00:00:00.000Z' },
    { prefix: '49900', blocked: true },
  ])
  const price = await call('GET', '/rates/lookup?rate_plan=default&number=4915&duration=60')
  expect(price.data()).toMatchObject({ cost: 0.5 })
})

test('lines that share their terms keep what is their own, errors included', async () => {
  const { send, call } = await withPlan()
  const table = (third: string) =>
    `prefix,description,rate_per_minute,increment\n1,one,0.1,6\n+2,,0.1,6\n${third},three,0.1,6\n4,,0.1,60\n`
  expect((await send(table('x'))).body).toMatchObject({
    details: [{ path: 'lines.4.prefix' }],
  })
  expect((await send(table('3'))).status).toBe(200)
  const terms = { rate_per_minute: 0.1, increment: 6 }
  expect((await call('GET', '/rates')).data()).toMatchObject([
    { prefix: '1', description: 'one', ...terms },
    { prefix: '2', description: null, ...terms },
    { prefix: '3', description: 'three', ...terms },
    { prefix: '4', description: null, ...terms, increment: 60 },
  ])
})

test('an import replaces rates of the same prefix and start, and with mode=replace removes the others', async () => {
  const { send, prefixes } = await withPlan()
  await send('prefix,rate_per_minute\n1,0.1\n2,0.2\n')
  const merged = await send('prefix;rate_per_minute\n2;0.3\n3;0.3\n')
  expect(merged.data()).toEqual({ imported: 2, created: 1, updated: 1, removed: 0 })
  expect(await prefixes()).toEqual(['1', '2', '3'])
  const replaced = await send('prefix\trate_per_minute\n7\t0.3\n', '&mode=replace')
  expect(replaced.data()).toEqual({ imported: 1, created: 1, updated: 0, removed: 3 })
  expect(await prefixes()).toEqual(['7'])
})

test('one wrong line refuses the whole table, with the line and the field of every error', async () => {
  const { send, prefixes } = await withPlan()
  await send('prefix,rate_per_minute\n1,0.1\n')
  const answer = await send(
    [
      'prefix,rate_per_minute,increment,blocked,effective_from,effective_to',
      '2,0.1,1,false,,',
      '3,cheap,1,false,,',
      '4,0.1,many,maybe,,',
      '5,0.1',
      '2,0.1,1,false,,',
      '6,0.1,1,false,2026-02-01T00:00:00Z,2026-01-01T00:00:00Z',
    ].join('\n'),
    '&mode=replace',
  )
  expect(answer.body).toMatchObject({
    statusCode: 400,
    error: '5 lines are not valid',
    details: [
      { path: 'lines.3.rate_per_minute' },
      { path: 'lines.4.increment' },
      { path: 'lines.4.blocked' },
      { path: 'lines.5', message: 'has 2 cells, the header has 6' },
      { path: 'lines.6.prefix', message: 'repeats line 2' },
      { path: 'lines.7.effective_to' },
    ],
  })
  expect(await prefixes()).toEqual(['1'])
})

test('of very many wrong lines the first hundred are told, and how many there are', async () => {
  const { send } = await withPlan()
  const answer = await send(`prefix,rate_per_minute\n${'x,1\n'.repeat(5_000)}`)
  expect(answer.body).toMatchObject({ error: '5000 lines are not valid' })
  expect(answer.body).toHaveProperty('details.length', 100)
})

test.each([
  ['an unknown column', 'prefix,rate_per_minute,color\n1,1,red', 'lines.1'],
  ['a missing column', 'prefix\n1', 'lines.1'],
  ['a column twice', 'prefix,rate_per_minute,prefix\n1,1,1', 'lines.1'],
  ['an open quotation', 'prefix,rate_per_minute\n1,"0.1\n2,0.2', 'lines.2'],
  ['text behind a quotation', 'prefix,rate_per_minute\n"1"x,0.1', 'lines.2'],
])('a table with %s is refused with its line', async (_, table, path) => {
  const { send } = await withPlan()
  const answer = await send(table)
  expect(answer.body).toMatchObject({ statusCode: 400, details: [{ path }] })
})

test.each([
  ['no lines', 'prefix,rate_per_minute\n'],
  ['nothing', ''],
  ['a NUL byte', 'prefix,rate_per_minute\n1\u0000,1'],
])('a table with %s is refused', async (_, table) => {
  expect((await (await withPlan()).send(table)).status).toBe(400)
})

test('a table may name a plan on each line, and must name one that exists', async () => {
  const { call, prefixes } = await withPlan()
  await call('POST', '/rate-plans', { name: 'other' })
  const table = 'rate_plan,prefix,rate_per_minute\ndefault,1,1\nother,2,2\n'
  const answer = await call('POST', '/rates/import', table, { headers: csv })
  expect(answer.data()).toMatchObject({ created: 2 })
  expect(await prefixes()).toEqual(['1', '2'])
  const refused = await call('POST', '/rates/import', `${table}none,3,3\n,4,4\n`, { headers: csv })
  expect(refused.body).toMatchObject({
    statusCode: 400,
    details: [
      { path: 'lines.4.rate_plan', message: 'there is no rate_plan "none"' },
      { path: 'lines.5.rate_plan', message: 'is required' },
    ],
  })
})

test('what was exported can be imported again and changes nothing', async () => {
  const { send, call } = await withPlan()
  await send(
    'prefix,rate_per_minute,connect_fee,first_increment,first_rate_per_minute,description,blocked,effective_from\n' +
      '49,0.10,0.4,60,0.2,"a, ""b""",false,2025-01-01T00:00:00Z\n1,0.000001,0,1,,x,true,\n',
  )
  const before = (await call('GET', '/rates')).data()
  const exported = await call('GET', '/rates/export?rate_plan=default')
  expect(exported.headers.get('content-type')).toContain('text/csv')
  expect((await send(exported.text)).data()).toMatchObject({ created: 0, updated: 2 })
  expect((await call('GET', '/rates')).data()).toEqual(before)
})

test('a cell is read back as it was written, whatever it holds', () => {
  const cells = ['plain', 'a,b', 'a;b', '"', '""', ' x ', 'two\nlines', '', 'tab\t', "it's"]
  const [, step] = [...parseCsv(`a,b\n${csvLine(cells)}\n`)]
  expect(step).toEqual({ kind: 'record', record: { line: 2, cells } })
})

test('a prefix is read in any spelling, and two spellings of one are a repetition', async () => {
  const { send, prefixes } = await withPlan()
  await send('prefix,rate_per_minute\n1 (900),6\n+1-976,6\n')
  expect(await prefixes()).toEqual(['1900', '1976'])
  const twice = await send('prefix,rate_per_minute\n1900,6\n1.900,0.1\n')
  expect(twice.body).toMatchObject({
    statusCode: 400,
    details: [{ path: 'lines.3.prefix', message: 'repeats line 2' }],
  })
})

test('a dry run says what an import would do, and stores nothing', async () => {
  const { send, prefixes } = await withPlan()
  const table = 'prefix,rate_per_minute\n49,0.10\n44,0.20\n'
  const report = { imported: 2, created: 2, updated: 0, removed: 0 }
  expect((await send(table, '&dry_run=true')).data()).toEqual(report)
  expect(await prefixes()).toEqual([])
  expect((await send(table, '&dry_run=false')).data()).toEqual(report)
  const other = 'prefix,rate_per_minute\n49,0.30\n'
  const replaced = { imported: 1, created: 1, updated: 0, removed: 2 }
  expect((await send(other, '&mode=replace&dry_run=true')).data()).toEqual(replaced)
  expect(await prefixes()).toEqual(['44', '49'])
  const wrong = await send('prefix,rate_per_minute\n49,cheap\n', '&dry_run=true')
  expect(wrong.body).toMatchObject({ error: '1 line is not valid' })
  expect((await send(other, '&dry_run=perhaps')).status).toBe(400)
})
