import { expect, test } from 'vitest'
import type { Answer } from '../../support/control.ts'
import { openResources, type TestResources } from '../../support/resources.ts'

async function withCustomers() {
  const control = await openResources()
  const { call } = control
  for (const slug of ['one', 'two'])
    await call('POST', '/tenants', {
      slug,
      name: slug,
      domains: [`${slug}.example`],
      numbers: [slug === 'one' ? '4930' : '4940'],
    })
  await call('POST', '/customers', { name: 'Acme', tenant: 'one' })
  await call('POST', '/customers', { name: 'Bolt', tenant: 'one' })
  await call('POST', '/customers', { name: 'Acme', tenant: 'two' })
  await call('POST', '/dispatcher', {
    endpoint_name: 'pbx',
    algorithm: 8,
    set_id: 7,
    nodes: [{ host: '10.0.0.1' }],
  })
  return control
}

const pathsOf = ({ body }: Answer): unknown =>
  (body as { details?: { path: string }[] }).details?.map(({ path }) => path)

const numbersOf = async ({ call }: TestResources, id: number) =>
  (await call('GET', `/customers/${id}`)).data<{ numbers: string[] }>().numbers

test('a number has an owner, a target and what is known of it, and is shown with a plus', async () => {
  const { call } = await withCustomers()
  const created = await call('POST', '/numbers', {
    number: '49 (30) 100',
    tenant: 'one',
    customer: 'Acme',
    set: 'pbx',
    display_name: 'Acme',
    emergency_address: 'loc-7',
    verified_since: '2026-01-02',
    attestation: 'A',
    monthly_fee: '1.50',
  })
  expect([created.status, created.data()]).toEqual([
    201,
    {
      id: 1,
      number: '+4930100',
      last_number: null,
      tenant: 'one',
      customer_id: 1,
      customer: 'Acme',
      set_id: 7,
      extension: null,
      extension_domain: null,
      agent: null,
      display_name: 'Acme',
      emergency_address: 'loc-7',
      verified_since: '2026-01-02T00:00:00.000Z',
      attestation: 'A',
      monthly_fee: 1.5,
      is_active: true,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    },
  ])
  const changed = await call('PATCH', '/numbers/1', { is_active: false, set_id: null })
  expect(changed.data()).toMatchObject({ number: '+4930100', is_active: false, set_id: null })
  expect((await call('DELETE', '/numbers/1')).status).toBe(200)
  expect((await call('GET', '/numbers/1')).status).toBe(404)
})

test.each([
  [{ number: '030100' }, 'number'],
  [{ number: 'alice' }, 'number'],
  [{ number: '+49' + '3'.repeat(14) }, 'number'],
  [{ number: '+4930100', last_number: '+493019' }, 'last_number'],
  [{ number: '+4930100', last_number: '+4930099' }, 'last_number'],
  [{ number: '+49300000000', last_number: '+49309999999' }, 'last_number'],
  [{ number: '+4930100', set_id: 7, extension: '100' }, 'set_id'],
  [{ number: '+4930100', customer: 'Acme', tenant: 'two', customer_id: 1 }, 'customer_id'],
])('%j is refused at %s', async (body, path) => {
  const { call } = await withCustomers()
  const answer = await call('POST', '/numbers', body)
  expect([answer.status, pathsOf(answer)]).toEqual([400, [path]])
})

test('a number has one row: no block overlaps another, and the refusal names no owner', async () => {
  const { call } = await withCustomers()
  const block = { number: '+4930200', last_number: '+4930299', tenant: 'one', customer: 'Bolt' }
  expect((await call('POST', '/numbers', block)).status).toBe(201)
  for (const other of [
    { number: '+4930200' },
    { number: '+4930250' },
    { number: '+4930299' },
    { number: '+4930100', last_number: '+4930200' },
    { number: '+4930299', last_number: '+4930350' },
    { number: '+4930000', last_number: '+4930999' },
    { number: '+4930240', last_number: '+4930250' },
  ]) {
    const refused = await call('POST', '/numbers', { ...other, tenant: 'two' })
    expect([refused.status, refused.text.includes('Bolt')]).toEqual([409, false])
    expect(refused.body).toMatchObject({ code: 'duplicate', details: [{ path: 'number' }] })
  }
  for (const number of ['+4930199', '+4930300', '+493025', '+49302000'])
    expect((await call('POST', '/numbers', { number })).status).toBe(201)
  const inCustomer = await call('PATCH', '/customers/1', { numbers: ['4930250'] })
  expect([inCustomer.status, inCustomer.body]).toMatchObject([
    409,
    { details: [{ path: 'numbers.0', message: 'is already taken' }] },
  ])
  const grown = await call('PATCH', '/numbers/1', { last_number: '+4930300' })
  expect(grown.status).toBe(409)
  expect((await call('PATCH', '/numbers/1', { last_number: '+4930298' })).status).toBe(200)
})

test('the numbers of a customer are a view: given ones replace, absent ones stay', async () => {
  const control = await withCustomers()
  const { call } = control
  await call('PATCH', '/customers/1', { numbers: ['4930101', '+4930102', 'door', '17'] })
  expect(await numbersOf(control, 1)).toEqual(['+4930102', '17', '4930101', 'door'])
  await call('PATCH', '/customers/1', { email: 'a@one.example' })
  expect(await numbersOf(control, 1)).toHaveLength(4)
  const listed = await call('GET', '/numbers?search=4930102')
  expect(listed.data()).toMatchObject([{ number: '+4930102', customer: 'Acme', tenant: 'one' }])
  const [row] = listed.data<{ id: number }[]>()
  await call('PATCH', `/numbers/${row?.id}`, { display_name: 'Desk' })
  await call('POST', '/numbers', { number: '4930103', tenant: 'one', customer: 'Acme' })
  expect(await numbersOf(control, 1)).toContain('+4930103')

  await call('PATCH', '/customers/1', { numbers: ['17'] })
  expect(await numbersOf(control, 1)).toEqual(['17'])
  // More is known of it than its owner, so it stays, and nobody owns it.
  const left = await call('GET', '/numbers')
  expect(left.data()).toMatchObject([
    { number: '17', customer: 'Acme' },
    { number: '+4930102', customer: null, display_name: 'Desk' },
  ])
  await call('PATCH', '/customers/2', { numbers: ['+4930102'] })
  expect(await numbersOf(control, 2)).toEqual(['+4930102'])
  const foreign = await call('PATCH', '/customers/3', { numbers: ['+4930102'] })
  expect(foreign.status).toBe(409)
})

test('a change of the numbers of a customer is undone with all that was known of them', async () => {
  const control = await withCustomers()
  const { call } = control
  await call('PATCH', '/customers/1', { numbers: ['+4930101', '+4930102'] })
  const shown = await call('GET', '/numbers?search=4930102')
  const [{ id } = { id: 0 }] = shown.data<{ id: number }[]>()
  await call('PATCH', `/numbers/${id}`, { display_name: 'Desk', monthly_fee: 2 })
  await call('PATCH', '/customers/1', { numbers: [] })
  await undoLast(control, 'customer')
  expect(await numbersOf(control, 1)).toEqual(['+4930101', '+4930102'])
  expect((await call('GET', `/numbers/${id}`)).data()).toMatchObject({
    customer: 'Acme',
    display_name: 'Desk',
    monthly_fee: 2,
  })
  await undoLast(control, 'phone_number')
  expect((await call('GET', `/numbers/${id}`)).data()).toMatchObject({ display_name: null })
})

async function undoLast({ call }: TestResources, kind: string): Promise<void> {
  const changes = await call('GET', '/changes?limit=50')
  const last = changes
    .data<{ change_id: string; target_kind: string; undone_at: unknown }[]>()
    .find(({ target_kind, undone_at }) => target_kind === kind && undone_at === null)
  const undone = await call('POST', `/changes/${last?.change_id}/undo`, { reason: 'a test' })
  expect([undone.status, undone.text]).toEqual([200, expect.anything()])
}

test('a customer with a block stays, and one without leaves its numbers free', async () => {
  const { call } = await withCustomers()
  await call('PATCH', '/customers/1', { numbers: ['+4930101'] })
  const block = { number: '+4930200', last_number: '+4930299', tenant: 'one', customer: 'Acme' }
  await call('POST', '/numbers', block)
  expect((await call('DELETE', '/customers/1')).status).toBe(409)
  await call('PATCH', '/numbers/2', { customer: null })
  expect((await call('DELETE', '/customers/1')).status).toBe(200)
  expect((await call('PATCH', '/customers/2', { numbers: ['+4930101'] })).status).toBe(200)
})

test('a tenant has its own numbers only, and the platform vouches for them', async () => {
  const { call, callAs } = await withCustomers()
  const own = { number: '+4930100', customer: 'Acme' }
  expect((await callAs('one', 'POST', '/numbers', own)).data()).toMatchObject({ tenant: 'one' })
  for (const body of [
    { number: '+4940100' },
    { number: '+4929999', last_number: '+4930001' },
    { number: '+4950100' },
  ])
    expect((await callAs('one', 'POST', '/numbers', body)).body).toMatchObject({
      statusCode: 400,
      details: [{ path: 'number', message: 'is not a number of this tenant' }],
    })
  for (const field of [{ attestation: 'A' }, { verified_since: '2026-01-01' }])
    expect((await callAs('one', 'PATCH', '/numbers/1', field)).body).toMatchObject({
      statusCode: 403,
      code: 'platform_only',
    })
  await call('PATCH', '/numbers/1', { attestation: 'B' })
  expect((await callAs('one', 'PATCH', '/numbers/1', { display_name: 'A' })).status).toBe(200)
  expect((await callAs('two', 'GET', '/numbers')).data()).toEqual([])
  expect((await callAs('two', 'PATCH', '/numbers/1', { is_active: false })).status).toBe(404)
  expect((await callAs('two', 'DELETE', '/numbers/1')).status).toBe(404)
})

test('where calls go and what is paid need the scopes of routes and of money', async () => {
  const control = await withCustomers()
  const token = await control.key({ scopes: ['customers:*'] })
  const post = (body: object) => control.request('/api/v1/numbers', { token, method: 'POST', body })
  expect((await post({ number: '+4930100', set_id: 7 })).body).toMatchObject({
    statusCode: 403,
    details: [{ path: 'set_id' }],
  })
  expect((await post({ number: '+4930100', monthly_fee: 1 })).body).toMatchObject({
    statusCode: 403,
    details: [{ path: 'monthly_fee' }],
  })
  expect((await post({ number: '+4930100' })).status).toBe(201)
  const table = 'number,set_id\n+4930101,7\n'
  const imported = await control.request('/api/v1/numbers/import', {
    token,
    method: 'POST',
    body: table,
    headers: { 'content-type': 'text/csv' },
  })
  expect(imported.body).toMatchObject({ statusCode: 403, code: 'insufficient_scope' })
})

const importTable = ({ call }: TestResources, text: string, query = '') =>
  call('POST', `/numbers/import${query}`, text, {
    headers: { 'content-type': 'text/csv' },
  })

test('a table is imported as a whole, and what is exported is imported again', async () => {
  const control = await withCustomers()
  const { call } = control
  await call('POST', '/pbx/extensions', {
    tenant: 'one',
    domain: 'one.example',
    extension: '100',
    password: 'secret-100-x',
    display_name: 'Desk',
  })
  const table = [
    'number;last_number;tenant;customer;set_id;extension;attestation;monthly_fee;is_active',
    '+49 30 100;;one;Acme;;100;A;1.25;yes',
    '+4930200;+4930299;one;Bolt;7;;;;no',
    '4950100;;;;;;;;',
  ].join('\n')
  const tried = await importTable(control, table, '?dry_run=true')
  expect(tried.data()).toEqual({ imported: 3, created: 3, updated: 0 })
  expect((await call('GET', '/numbers')).data()).toEqual([])
  expect((await importTable(control, table)).data()).toEqual({
    imported: 3,
    created: 3,
    updated: 0,
  })
  const exported = await call('GET', '/numbers/export')
  expect(exported.text.split('\n').slice(0, 3)).toEqual([
    'number,last_number,tenant,customer,set_id,extension,extension_domain,agent,display_name,' +
      'emergency_address,verified_since,attestation,monthly_fee,is_active',
    '+4930100,,one,Acme,,100,one.example,,,,,A,1.25,true',
    '+4930200,+4930299,one,Bolt,7,,,,,,,,0.00,false',
  ])
  const before = (await call('GET', '/numbers')).data()
  expect((await importTable(control, exported.text)).data()).toEqual({
    imported: 3,
    created: 0,
    updated: 0,
  })
  expect((await call('GET', '/numbers')).data()).toEqual(before)
  const named = 'number,display_name\n+4930100,\n+4930200,Lobby\n'
  expect((await importTable(control, named)).data()).toMatchObject({ created: 0, updated: 1 })
  await importTable(control, 'number,display_name\n+4930200,\n')
  // Columns that the table lacks keep their values.
  await importTable(control, 'number,display_name\n+4930100,Desk\n')
  expect((await call('GET', '/numbers?search=4930100')).data()).toMatchObject([
    { customer: 'Acme', extension: '100', display_name: 'Desk', monthly_fee: 1.25 },
  ])
})

test('a table of thousands of lines is imported, and imported again', async () => {
  const control = await withCustomers()
  const lines = Array.from({ length: 1_200 }, (_, index) => `+4930${1_000_000 + index},one,Acme\n`)
  const table = `number,tenant,customer\n${lines.join('')}`
  const first = await importTable(control, table)
  expect([first.status, first.data()]).toEqual([
    200,
    { imported: 1_200, created: 1_200, updated: 0 },
  ])
  const again = await importTable(control, table)
  expect([again.status, again.data()]).toEqual([200, { imported: 1_200, created: 0, updated: 0 }])
})

test('each wrong line is reported, and nothing is imported', async () => {
  const control = await withCustomers()
  const { call } = control
  await call('POST', '/numbers', { number: '+4930300', last_number: '+4930399' })
  const wrong = await importTable(
    control,
    'number,last_number,customer,attestation\n+4930100,,,\nalice,,,\n+4930101,,,X\n+4930102,+493,,\n',
  )
  expect(pathsOf(wrong)).toEqual(['lines.3.number', 'lines.4.attestation', 'lines.5.last_number'])
  const twice = await importTable(
    control,
    'number,last_number\n+4930100,+4930199\n+4930500,\n+4930150,\n',
  )
  expect(twice.body).toMatchObject({
    statusCode: 400,
    details: [{ path: 'lines.4.number', message: 'repeats line 2' }],
  })
  const unknown = await importTable(control, 'number,customer\n+4930100,\n+4930101,Nobody\n')
  expect(unknown.body).toMatchObject({
    statusCode: 400,
    details: [{ path: 'lines.3.customer' }],
  })
  const noSet = await importTable(control, 'number,set_id\n+4930100,99\n')
  expect(pathsOf(noSet)).toEqual(['lines.2.set_id'])
  const noColumn = await importTable(control, 'number,owner\n+4930100,one\n')
  expect(noColumn.body).toMatchObject({
    details: [
      { message: expect.stringContaining('known are number, last_number, tenant, customer') },
    ],
  })
  const taken = await importTable(control, 'number\n+4930100\n+4930350\n')
  expect(taken.body).toMatchObject({
    statusCode: 409,
    code: 'duplicate',
    details: [{ path: 'lines.3.number', message: 'is already taken' }],
  })
  expect((await call('GET', '/numbers')).data()).toHaveLength(1)
})

test('a tenant imports its own numbers, and exports no others', async () => {
  const control = await withCustomers()
  const { call, callAs, key, request } = control
  await call('POST', '/numbers', { number: '+4940100', tenant: 'two' })
  const token = await key({ tenant_scope: 'tenant', tenant_slug: 'one' })
  const post = (text: string) =>
    request('/api/v1/numbers/import', {
      token,
      method: 'POST',
      body: text,
      headers: { 'content-type': 'text/csv' },
    })
  for (const [table, path] of [
    ['number\n+4930100\n+4940100\n', 'lines.3.number'],
    ['number\n+4940101\n', 'lines.2.number'],
    ['number,attestation\n+4930100,A\n', 'lines.2.attestation'],
  ] as const)
    expect((await post(table)).body).toMatchObject({ statusCode: 400, details: [{ path }] })
  expect((await post('number,customer\n+4930100,Acme\n')).status).toBe(200)
  const exported = await callAs('one', 'GET', '/numbers/export')
  expect(exported.text.trim().split('\n')).toHaveLength(2)
})
