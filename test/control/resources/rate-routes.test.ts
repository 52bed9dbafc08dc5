import { expect, test } from 'vitest'
import { type Reader, setReadingThread } from '../../../schema/sql/query.ts'
import { seedFile } from '../../../engine/commands/seed.ts'
import { runSql } from '../../support/stored.ts'
import { openResources, type TestResources } from '../../support/resources.ts'
import { csvRecords } from '../../../control/resources/csv-records.ts'
import { csvLine } from '../../../control/resources/csv-table.ts'
import { readRates } from '../../../control/resources/rate-import.ts'

async function withPlan() {
  const control = await openResources()
  await control.call('POST', '/api/v1/rate-plans', { name: 'default', currency: 'EUR' })
  return control
}

const golden = {
  rate_plan: 'default',
  prefix: '+49',
  connect_fee: '0.40',
  first_increment: 60,
  first_rate_per_minute: 0.2,
  rate_per_minute: '0.10',
}

const lookup = (control: TestResources, query: string) =>
  control.call('GET', `/rates/lookup?rate_plan=default&${query}`)

test('prefixes are read with spaces or without, numbers in any spelling, and are one', async () => {
  const control = await withPlan()
  const rate = { rate_plan: 'default', rate_per_minute: 6 }
  const premium = await control.call('POST', '/rates', { ...rate, prefix: '+1 900' })
  expect(premium.data()).toMatchObject({ prefix: '1900' })
  const twin = await control.call('POST', '/rates', { ...rate, prefix: '1 900' })
  expect(twin.status).toBe(409)
  await control.call('POST', '/rates', { ...rate, prefix: '1', rate_per_minute: 0.1 })
  for (const number of ['19005551234', '1-900-555.1234', '%2B1(900)%205551234', '+1.9005551234'])
    expect((await lookup(control, `number=${number}`)).data()).toMatchObject({
      number: expect.stringMatching(/^\+?19005551234$/),
      prefix: '1900',
      cost: 6,
    })
  for (const number of [
    '1%2B900',
    '%2B%2B1900',
    'alice',
    '1900x',
    '-',
    '%EF%BC%91900',
    '1'.repeat(65),
  ])
    expect((await lookup(control, `number=${number}`)).status).toBe(400)
  for (const prefix of ['1+9', '++1', '1'.repeat(21), '1'.repeat(200), '1x'])
    expect((await control.call('POST', '/rates', { ...rate, prefix })).status).toBe(400)
})

test('a rate gets its defaults: by the second, the first increment at the same price', async () => {
  const { call } = await withPlan()
  const created = await call('POST', '/rates', {
    rate_plan: 'default',
    prefix: '1',
    rate_per_minute: 0.05,
  })
  expect(created.status).toBe(201)
  expect(created.data()).toEqual({
    id: 1,
    rate_plan_id: 1,
    rate_plan: 'default',
    prefix: '1',
    description: null,
    rate_per_minute: 0.05,
    rate_per_minute_exact: '0.05',
    connect_fee: 0,
    connect_fee_exact: '0.00',
    first_increment: 0,
    first_rate_per_minute: 0.05,
    first_rate_per_minute_exact: '0.05',
    increment: 1,
    period: null,
    blocked: false,
    effective_from: null,
    effective_to: null,
  })
})

test('a plan has one rate per prefix and start', async () => {
  const { call } = await withPlan()
  await call('POST', '/rates', golden)
  const twin = await call('POST', '/rates', { ...golden, prefix: '49' })
  expect(twin.body).toMatchObject({ statusCode: 409, details: [{ path: 'prefix' }] })
  const later = await call('POST', '/rates', {
    ...golden,
    effective_from: '2026-02-01T00:00:00+01:00',
  })
  expect(later.data()).toMatchObject({ effective_from: '2026-01-31T23:00:00.000Z' })
})

test('the parts of an explained price add up to it', async () => {
  const control = await withPlan()
  await control.call('POST', '/rates', { ...golden, increment: 6 })
  const answer = (await lookup(control, 'number=4930100&duration=85')).data<{
    charged_seconds: number
    parts: { part: string; seconds: number; amount_exact: string }[]
  }>()
  expect(answer.charged_seconds).toBe(90)
  expect(answer.parts).toEqual([
    { part: 'connect_fee', seconds: 0, amount_exact: '0.40' },
    { part: 'first_increment', seconds: 60, amount_exact: '0.20' },
    { part: 'further_increments', seconds: 30, amount_exact: '0.05' },
  ])
})

test('a minute at 0.05 costs 0.05, in one increment or by the second', async () => {
  const control = await withPlan()
  const rate = { rate_plan: 'default', increment: 1 }
  const decks = [
    ['0.05', 60, '0.05'],
    ['0.02', 60, '0.02'],
    ['0.10', 60, '0.10'],
    ['0.01', 3_600, '0.60'],
    ['6.40', 7_200, '768.00'],
  ] as const
  for (const first_increment of [0, 1])
    for (const [index, [rate_per_minute, duration, cost_exact]] of decks.entries()) {
      const prefix = `${first_increment + 1}${index}`
      await control.call('POST', '/rates', { ...rate, prefix, first_increment, rate_per_minute })
      const answer = await lookup(control, `number=${prefix}5550100&duration=${duration}`)
      expect(answer.data()).toMatchObject({ cost_exact })
    }
})

test('a look-up names the longest prefix, at the asked time, and an unescaped + means +', async () => {
  const control = await withPlan()
  await control.call('POST', '/rates', golden)
  await control.call('POST', '/rates', {
    ...golden,
    prefix: '4930',
    rate_per_minute: 1,
    effective_from: '2026-06-01T00:00:00Z',
  })
  expect((await lookup(control, 'number=+4930100')).data()).toMatchObject({ prefix: '49' })
  const later = await lookup(control, 'number=4930100&at=2026-07-01T00:00:00Z')
  expect(later.data()).toMatchObject({ prefix: '4930' })
})

test('a blocked prefix has no price, and a number without a rate is not found', async () => {
  const control = await withPlan()
  await control.call('POST', '/rates', { ...golden, blocked: true })
  expect((await lookup(control, 'number=49')).data()).toMatchObject({ blocked: true, cost: null })
  const missing = await lookup(control, 'number=1')
  expect([missing.status, missing.code]).toEqual([404, 'no_rate'])
})

test('a changed or removed rate holds for the next look-up', async () => {
  const control = await withPlan()
  const { id } = (await control.call('POST', '/rates', golden)).data<{ id: number }>()
  await control.call('PATCH', `/rates/${id}`, { connect_fee: 1 })
  expect((await lookup(control, 'number=49&duration=20')).data()).toMatchObject({ cost: 1.2 })
  await control.call('DELETE', `/rates/${id}`)
  expect((await lookup(control, 'number=49')).status).toBe(404)
})

test('a plan with customers keeps its currency and cannot be removed', async () => {
  const { call } = await withPlan()
  await call('POST', '/customers', { name: 'a', rate_plan: 'default' })
  expect((await call('PATCH', '/rate-plans/1', { currency: 'USD' })).code).toBe('in_use')
  expect((await call('PATCH', '/rate-plans/1', { decimals: 2 })).data()).toMatchObject({
    decimals: 2,
  })
  expect((await call('DELETE', '/rate-plans/1')).code).toBe('in_use')
})

test('a tenant has one turn to read, however many plans it exports at a time', async () => {
  const { store, callAs, tenant } = await withPlan()
  await tenant('acme')
  const readers: Reader[] = []
  setReadingThread(store.statements, {
    prepare(sql, reader) {
      if (/\+rate\.rate_plan_id/.test(sql)) readers.push(reader)
      return store.statements.prepare(sql)
    },
  })
  for (const name of ['one', 'two']) {
    await callAs('acme', 'POST', '/rate-plans', { name })
    expect((await callAs('acme', 'GET', `/rates/export?rate_plan=${name}`)).status).toBe(200)
  }
  expect(readers).toEqual([expect.any(Number), readers[0]])
})

const csv = { 'content-type': 'text/csv' }

async function withTables() {
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
  const { send, call } = await withTables()
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

test('an import replaces rates of the same prefix and start, and with mode=replace removes the others', async () => {
  const { send, prefixes } = await withTables()
  await send('prefix,rate_per_minute\n1,0.1\n2,0.2\n')
  const merged = await send('prefix;rate_per_minute\n2;0.3\n3;0.3\n')
  expect(merged.data()).toEqual({ imported: 2, created: 1, updated: 1, removed: 0 })
  expect(await prefixes()).toEqual(['1', '2', '3'])
  const replaced = await send('prefix\trate_per_minute\n7\t0.3\n', '&mode=replace')
  expect(replaced.data()).toEqual({ imported: 1, created: 1, updated: 0, removed: 3 })
  expect(await prefixes()).toEqual(['7'])
})

test('one wrong line refuses the whole table, with the line and the field of every error', async () => {
  const { send, prefixes } = await withTables()
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
  const { send } = await withTables()
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
  const { send } = await withTables()
  const answer = await send(table)
  expect(answer.body).toMatchObject({ statusCode: 400, details: [{ path }] })
})

test.each([
  ['no lines', 'prefix,rate_per_minute\n'],
  ['nothing', ''],
  ['a NUL byte', 'prefix,rate_per_minute\n1\u0000,1'],
])('a table with %s is refused', async (_, table) => {
  expect((await (await withTables()).send(table)).status).toBe(400)
})

test('a table may name a plan on each line, and must name one that exists', async () => {
  const { call, prefixes } = await withTables()
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
  const { send, call } = await withTables()
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

const noPause = () => Promise.resolve()

test('a cell is read back as it was written, whatever it holds', async () => {
  const cells = ['plain', 'a,b', 'a;b', '"', '""', ' x ', 'two\nlines', '', 'tab\t', "it's"]
  const table = Buffer.from(`a,b\n${csvLine(cells)}\n\n${csvLine(cells)}`)
  const records = []
  for await (const some of csvRecords(table, noPause)) records.push(...some)
  expect(records).toEqual([
    { line: 1, cells: ['a', 'b'] },
    { line: 2, cells },
    { line: 5, cells },
  ])
})

test('an export runs no formula in a spreadsheet, and is read back as it was', async () => {
  const { send, call } = await withTables()
  const texts = [
    ...['=1+1', '@x', '+SUM(A1)', '-x', "'=1+1", "''  =x", 'a;=b', "a;'=b", '＝x', "it's", '- "q"'],
    ...["' ; '=a;@b", '; =a;', '+49'],
  ]
  const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`
  for (const [index, description] of texts.entries())
    await call('POST', '/rates', {
      ...{ rate_plan: 'default', prefix: `${100 + index}`, rate_per_minute: '1', description },
    })
  const before = (await call('GET', '/rates')).data<{ description: string }[]>()
  expect(before.map(({ description }) => description).toSorted()).toEqual(texts.toSorted())
  const { text } = await call('GET', '/rates/export?rate_plan=default')
  const cells = text.split('\n').map((line) => line.slice('100,'.length))
  expect(cells[1]).toMatch(/^'=1\+1,/)
  expect(cells[7]?.startsWith(quoted("a;'=b"))).toBe(true)
  // Neither a cell, nor what begins behind a semicolon, is a formula.
  expect(text).not.toMatch(/(?:^|[,";\t])[^\S\r\n]*(?:[=@＝]|[+-](?!\d+(?:[",;]|$)))/m)
  expect((await send(text)).data()).toMatchObject({ created: 0, updated: texts.length })
  expect((await call('GET', '/rates')).data()).toEqual(before)
})

test('a prefix is read with spaces or without, and two spellings of one are a repetition', async () => {
  const { send, prefixes } = await withTables()
  await send('prefix,rate_per_minute\n1 900,6\n+1 976,6\n')
  expect(await prefixes()).toEqual(['1900', '1976'])
  const twice = await send('prefix,rate_per_minute\n1900,6\n1 900,0.1\n')
  expect(twice.body).toMatchObject({
    statusCode: 400,
    details: [{ path: 'lines.3.prefix', message: 'repeats line 2' }],
  })
})

test('a dry run says what an import would do, and stores nothing', async () => {
  const { send, prefixes } = await withTables()
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

test('a quarter of a million rates are read of a table, and not one more', async () => {
  const read = (count: number) => {
    const lines = Array.from({ length: count }, (_, n) => `${n},1\n`)
    const table = Buffer.from(`prefix,rate_per_minute\n${lines.join('')}`)
    const plans = { planOf: () => Promise.resolve(1), periodsOf: () => Promise.resolve([]) }
    return readRates(table, plans, false, noPause)
  }
  expect(await read(250_000)).toHaveLength(250_000)
  await expect(read(250_001)).rejects.toMatchObject({ status: 400 })
})

test('what a table may not have is told by its line, before it is built', async () => {
  const { send, prefixes } = await withTables()
  const columns = Array.from({ length: 2_000 }, (_, index) => `c${index}`).join()
  const many = await send(`prefix,rate_per_minute,${columns}\n1,1\n`)
  expect(many.body).toMatchObject({
    statusCode: 400,
    error: 'The header of the table is not valid',
  })
  expect(many.body).toHaveProperty('details.length', 100)
  const line = { path: 'lines.1', message: expect.stringContaining('is too long') }
  const wide = Array.from({ length: 100_000 }, (_, index) => `c${index}`).join()
  for (const table of [`${wide}\n1`, ','.repeat(12_000_000), ' '.repeat(1_000_000)])
    expect((await send(table)).body).toMatchObject({ statusCode: 400, details: [line] })
  const open = await send(`prefix,rate_per_minute\n1,1\n"${'x'.repeat(16_000_000)}`)
  expect(open.body).toMatchObject({ statusCode: 400, details: [{ ...line, path: 'lines.3' }] })
  const empty = await send('\n'.repeat(16_000_000))
  expect(empty.body).toMatchObject({
    statusCode: 400,
    error: 'The table has more than 100000 empty lines',
  })
  const wrong = await send(`prefix,rate_per_minute\n${'x,1\n'.repeat(20_000)}`)
  expect(wrong.body).toMatchObject({ error: 'More than 10000 lines are not valid' })
  const long = await send(`prefix,description,rate_per_minute\n1,${'x'.repeat(500)},1`)
  expect(long.body).toMatchObject({
    details: [{ path: 'lines.2', message: 'has a cell of more than 400 characters' }],
  })
  expect(await prefixes()).toEqual([])
})

test('an import counts against the rates that a tenant may have, and the platform may import more', async () => {
  const { store, key, request, call, tenant } = await withTables()
  await tenant('acme')
  const token = await key({ tenant_slug: 'acme' })
  const post = (path: string, body: unknown, headers?: Readonly<Record<string, string>>) =>
    request(`/api/v1${path}`, { method: 'POST', token, body, ...(headers && { headers }) })
  const { id } = (await post('/rate-plans', { name: 'own' })).data<{ id: number }>()
  await runSql(
    store,
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 99998)
       INSERT INTO rate (rate_plan_id, prefix, rate_per_minute_micros, first_rate_per_minute_micros,
         connect_fee_micros, is_blocked, first_increment_seconds, increment_seconds)
       SELECT ${id}, CAST(100000 + i AS TEXT), 1, 1, 0, 0, 0, 1 FROM n`,
  )
  const table = (count: number) =>
    `prefix,rate_per_minute\n${Array.from({ length: count }, (_, n) => `2${n},1\n`).join('')}`
  const tooMany = await post('/rates/import?rate_plan=own', table(3), csv)
  expect([tooMany.status, tooMany.code]).toEqual([409, 'too_many_rates'])
  const dry = await post('/rates/import?rate_plan=own&dry_run=true', table(3), csv)
  expect([dry.status, dry.code]).toEqual([409, 'too_many_rates'])
  expect((await post('/rates/import?rate_plan=own', table(2), csv)).status).toBe(200)
  const repeated = await post('/rates/import?rate_plan=own', table(2), csv)
  expect(repeated.data()).toMatchObject({ created: 0, updated: 2 })
  const more = await call('POST', `/rates/import?rate_plan_id=${id}`, table(3), { headers: csv })
  expect(more.data()).toMatchObject({ created: 1 })
  expect((await post('/rates/import?rate_plan=own', table(3), csv)).status).toBe(200)
  expect((await post('/rates/import?rate_plan=own', table(4), csv)).code).toBe('too_many_rates')
})

test('a prefix has at most a thousand dated prices in a plan, through every door', async () => {
  const { call, send, store, now } = await withTables()
  const day = (index: number) => new Date(Date.UTC(2026, 0, 1 + index)).toISOString()
  const dated = (from: number, count: number) =>
    `prefix,rate_per_minute,effective_from\n${Array.from({ length: count }, (_, index) => `49,1,${day(from + index)}\n`).join('')}`
  const refused = { statusCode: 409, code: 'too_many_dates' }
  expect((await send(dated(0, 1_001))).body).toMatchObject(refused)
  expect((await send(dated(0, 1_000))).status).toBe(200)
  expect((await send(dated(999, 2))).body).toMatchObject(refused)
  expect((await send(dated(0, 1_000))).data()).toMatchObject({ created: 0 })
  const rate = { rate_plan: 'default', rate_per_minute: 1, prefix: '49' }
  const posted = await call('POST', '/rates', { ...rate, effective_from: day(2_000) })
  expect(posted.body).toMatchObject({ ...refused, details: [{ path: 'prefix' }] })
  const other = await call('POST', '/rates', { ...rate, prefix: '50' })
  const { id } = other.data<{ id: number }>()
  expect((await call('PATCH', `/rates/${id}`, { prefix: '49' })).body).toMatchObject(refused)
  expect((await call('PATCH', `/rates/${id}`, { prefix: '51' })).status).toBe(200)
  const seeded = (count: number) =>
    seedFile(
      store,
      JSON.stringify({
        rate_plans: [{ name: 'default', currency: 'EUR' }],
        rates: Array.from({ length: count }, (_, index) => ({
          ...rate,
          effective_from: day(3_000 + index),
        })),
      }),
      now(),
    )
  for (const count of [1, 1_200])
    await expect(seeded(count)).rejects.toMatchObject({
      name: 'SeedRefused',
      message: expect.stringContaining('at most 1000 prices'),
    })
})

test('an import is charged to its tenant by its rates, not by how long it waits for those of others', async () => {
  const control = await openResources()
  const { ocs } = control
  const importedAs = async (tenant: string, reloadPlan: (planId: number) => Promise<number>) => {
    await control.tenant(tenant)
    const plan = { name: tenant, currency: 'EUR' }
    expect((await control.callAs(tenant, 'POST', '/rate-plans', plan)).status).toBe(201)
    Object.assign(ocs, { reloadPlan })
    const imported = await control.request(
      `/api/v1/rates/import?rate_plan=${tenant}&mode=replace`,
      {
        token: await control.key({ tenant_slug: tenant }),
        method: 'POST',
        body: 'prefix,rate_per_minute\n49,0.10\n',
        headers: { 'content-type': 'text/csv' },
      },
    )
    expect(imported.status).toBe(200)
    return (await control.callAs(tenant, 'GET', '/rates')).status
  }
  const whileOthersLoad = () => {
    control.tick(60_000)
    return Promise.resolve(1)
  }
  expect(await importedAs('small', whileOthersLoad)).toBe(200)
  expect(await importedAs('large', () => Promise.resolve(1_000_000))).toBe(429)
})
