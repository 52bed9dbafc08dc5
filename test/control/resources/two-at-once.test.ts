import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'

const byText = (a: unknown, b: unknown) => String(a).localeCompare(String(b))

type Call = Awaited<ReturnType<typeof openResources>>['call']

const node = (last: number) => ({ host: `192.0.2.${last}` })
const set = { endpoint_name: 'pbx', algorithm: 8, nodes: [node(1), node(2)] }
const carrier = { name: 'north', gateways: [{ host: '203.0.113.1' }] }

const made = async (call: Call, path: string, body: object) =>
  (await call('POST', path, body)).data<{ id: number; nodes: { id: number }[] }>()

test('changes of two fields of one row at once are both kept', async () => {
  const { call } = await openResources()
  const { id } = await made(call, '/routing/carriers', carrier)
  const changes = [{ max_calls: 7 }, { max_cps: 3 }, { is_active: false }, { name: 'south' }]
  const answers = await Promise.all(
    changes.map((change) => call('PATCH', `/routing/carriers/${id}`, change)),
  )
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect((await call('GET', `/routing/carriers/${id}`)).data()).toMatchObject(
    Object.assign({}, ...changes) as object,
  )
})

test('of two new rows with one name, one is stored', async () => {
  const { call } = await openResources()
  const answers = await Promise.all([1, 2].map(() => call('POST', '/routing/carriers', carrier)))
  expect(answers.map(({ status }) => status).toSorted(byText)).toEqual([201, 409])
})

test('of two removals of one row, one finds it', async () => {
  const { call } = await openResources()
  const { id } = await made(call, '/routing/carriers', carrier)
  const answers = await Promise.all([1, 2].map(() => call('DELETE', `/routing/carriers/${id}`)))
  expect(answers.map(({ status }) => status).toSorted(byText)).toEqual([200, 404])
})

test('sets that are made at once get different numbers', async () => {
  const { call } = await openResources()
  const answers = await Promise.all(
    [1, 2, 3].map((n) =>
      call('POST', '/dispatcher', { ...set, endpoint_name: `pbx ${n}`, nodes: [node(n)] }),
    ),
  )
  const numbers = answers.map((answer) => answer.data<{ set_id: number }>().set_id)
  expect(numbers.toSorted(byText)).toEqual([1, 2, 3])
})

test.each(['DELETE', 'PATCH'] as const)(
  'of both nodes of a set, taken out at once by %s, one stays',
  async (method) => {
    const { call } = await openResources()
    const { id, nodes } = await made(call, '/dispatcher', set)
    const body = method === 'PATCH' ? { is_enabled: false } : undefined
    const answers = await Promise.all(
      nodes.map((each) => call(method, `/dispatcher/${id}/nodes/${each.id}`, body)),
    )
    expect(answers.map(({ status, code }) => code ?? status).toSorted(byText)).toEqual([
      200,
      'last_active_node',
    ])
  },
)

test('a plan keeps its currency when a customer is given it at the same time', async () => {
  const { call } = await openResources()
  const { id } = await made(call, '/rate-plans', { name: 'default', currency: 'EUR' })
  const [changed, customer] = await Promise.all([
    call('PATCH', `/rate-plans/${id}`, { currency: 'USD' }),
    call('POST', '/customers', { name: 'acme', rate_plan: 'default' }),
  ])
  const plan = (await call('GET', `/rate-plans/${id}`)).data<{ currency: string }>()
  expect(customer.data()).toMatchObject({ currency: plan.currency })
  expect(plan.currency).toBe(changed.status === 200 ? 'USD' : 'EUR')
})

test('two imports at once both hold', async () => {
  const { call } = await openResources()
  await made(call, '/rate-plans', { name: 'default', currency: 'EUR' })
  const headers = { 'content-type': 'text/csv' }
  const table = (first: number) =>
    Array.from({ length: 250 }, (_, index) => `${first + index},0.1`).join('\n')
  const answers = await Promise.all(
    [1_000, 1_200].map((first) =>
      call('POST', '/rates/import?rate_plan=default', `prefix,rate_per_minute\n${table(first)}\n`, {
        headers,
      }),
    ),
  )
  const reports = answers.map((answer) => answer.data<{ created: number; updated: number }>())
  expect(reports.map(({ created }) => created).toSorted(byText)).toEqual([200, 250])
  const { body } = await call('GET', '/rates?limit=1')
  expect(body).toMatchObject({ meta: { total: 450 } })
})
