import { expect, test } from 'vitest'
import type { Customer } from '../../../../../control/console/web/api/views.ts'
import {
  changedFields,
  customerFields,
  fieldText,
} from '../../../../../control/console/web/screens/customer-fields.ts'
import { openControl } from '../../../../support/control.ts'

const control = await openControl()
const token = await control.key()
const body = { name: 'acme', numbers: ['4930100', '4930101'], credit_limit: '0.000001' }
const acme = (await control.request('/customers', { token, body })).data<Customer>()

/** What the form has after this was typed. */
const typed = (customer: Customer | undefined, changes: Readonly<Record<string, string>>) =>
  changedFields(customer, (name) => {
    const field = customerFields.find((each) => each.name === name)
    return changes[name] ?? (field === undefined ? '' : fieldText(field, customer))
  })

test('a form that was not touched changes nothing', () => {
  expect(typed(acme, {})).toEqual({})
})

test('only what was changed is sent, as the API takes it', async () => {
  const changes = typed(acme, {
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
  expect(typed(answer.data<Customer>(), { email: '', max_cps: '' })).toEqual({
    email: null,
    max_cps: 0,
  })
})

test('a new customer is what the form says', async () => {
  const made = typed(undefined, { name: 'new one', is_active: 'on' })
  expect(made).toEqual({ name: 'new one' })
  expect((await control.request('/customers', { token, body: made })).status).toBe(201)
})
