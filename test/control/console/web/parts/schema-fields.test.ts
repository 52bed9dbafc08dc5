import { expect, test } from 'vitest'
import type { BodySchema, Carrier, Customer } from '../../../../../control/console/web/api/views.ts'
import {
  bodyFrom,
  fieldsOf,
  fieldText,
  rowsOf,
} from '../../../../../control/console/web/parts/schema-fields.ts'
import { openControl } from '../../../../support/control.ts'

const control = await openControl({ hasMediaRelay: true })
const token = await control.key()
const { components } = (await control.request('/openapi.json')).body as {
  components: { schemas: Record<string, BodySchema['create']> }
}
const schemaOf = (noun: string): BodySchema => {
  const [create, change] = [`Create${noun}Body`, `Update${noun}Body`].map(
    (name) => components.schemas[name],
  )
  if (create === undefined || change === undefined) throw new Error(`no body of ${noun}`)
  return { create, change }
}

/** The body that a form sends after this was typed in it. */
const typed = (
  noun: string,
  row: object | undefined,
  changes: Readonly<Record<string, string>>,
) => {
  const fields = fieldsOf(schemaOf(noun), row === undefined)
  return bodyFrom(fields, row && { ...row }, (name) => {
    const field = fields.find((each) => each.name === name)
    const [list = '', index = 0, item] = /^(.*)\.(\d+)\.(.*)$/.exec(name)?.slice(1) ?? []
    const ofRow = fields
      .find((each) => each.name === list)
      ?.items.find((each) => each.name === item)
    if (ofRow !== undefined)
      return changes[name] ?? fieldText(ofRow, rowsOf(row && { ...row }, list)[Number(index)])
    return changes[name] ?? (field === undefined ? '' : fieldText(field, row && { ...row }))
  })
}

const body = { name: 'acme', numbers: ['4930100', '4930101'], credit_limit: '0.000001' }
const acme = (await control.request('/customers', { token, body })).data<Customer>()

test('a form that was not touched changes nothing', () => {
  expect(typed('Customer', acme, {})).toEqual({})
})

test('only what was changed is sent, as the API takes it', async () => {
  const changes = typed('Customer', acme, {
    numbers: '4930100\n4930102',
    email: 'pay@acme.example',
    credit_limit: '12.5',
    max_cps: '3',
    is_active: '',
  })
  expect(changes).toEqual({
    numbers: ['4930100', '4930102'],
    email: 'pay@acme.example',
    credit_limit: '12.5',
    max_cps: 3,
    is_active: false,
  })
  const path = `/customers/${acme.id}`
  const answer = await control.request(path, { token, method: 'PATCH', body: changes })
  expect(answer.data<Customer>()).toMatchObject({ ...changes, credit_limit: 12.5 })
  const emptied = { email: '', max_cps: '', credit_limit: '', numbers: '' }
  const cleared = typed('Customer', answer.data<Customer>(), emptied)
  expect(cleared).toEqual({ email: null, max_cps: null, credit_limit: null, numbers: null })
  const after = await control.request(path, { token, method: 'PATCH', body: cleared })
  expect(after.data<Customer>()).toMatchObject({
    email: null,
    max_cps: 0,
    credit_limit: 0,
    numbers: [],
  })
})

test('a list of objects is sent as a whole, and an object with its other fields', async () => {
  const made = typed('Carrier', undefined, {
    name: 'telco',
    gateways: '2',
    'gateways.0.host': '192.0.2.1',
    'gateways.0.port': '5070',
    'gateways.0.inbound': '',
    'gateways.1.host': '192.0.2.2',
    'gateways.1.outbound': '',
    'auth.type': 'digest',
    'auth.username': 'trunk',
    'auth.password': ' a secret ',
  })
  expect(made).toMatchObject({
    gateways: [
      { host: '192.0.2.1', port: 5070, inbound: false, outbound: true },
      { host: '192.0.2.2', inbound: true, outbound: false },
    ],
    auth: { type: 'digest', username: 'trunk', password: ' a secret ' },
  })
  const answer = await control.request('/routing/carriers', { token, body: made })
  expect(answer.status).toBe(201)
  const row = answer.data<Carrier>()
  expect(typed('Carrier', row, {})).toEqual({})
  const changes = typed('Carrier', row, { 'auth.realm': 'telco.example' })
  expect(changes).toEqual({ auth: { realm: 'telco.example' } })
  const path = `/routing/carriers/${row.id}`
  const changed = await control.request(path, { token, method: 'PATCH', body: changes })
  expect(changed.data<Carrier>().auth).toEqual({ ...row.auth, realm: 'telco.example' })
})

test('what holds PEM has several lines, and the body keeps them', () => {
  const kinds = (noun: string) =>
    fieldsOf(schemaOf(noun), true).flatMap(({ name, kind }) => (kind === 'pem' ? [name] : []))
  expect(kinds('STIRKey')).toEqual(['private_key', 'certificate'])
  expect(kinds('STIRAuthority')).toEqual(['certificate'])
  expect(typed('STIRAuthority', undefined, { name: 'a', certificate: 'one\ntwo\n' })).toMatchObject(
    {
      certificate: 'one\ntwo',
    },
  )
})
