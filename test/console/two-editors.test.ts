/** Two people change the same thing in two tabs: nobody's change is lost, and nothing typed. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { formsOf, postFrom, row } from '../support/console-browser.ts'
import { shareConsole } from '../support/console-rig.ts'

const { signedIn } = shareConsole()

/** Sends a change as another program would. */
const patch = (page: Page, path: string, body: object): Promise<number> =>
  page.evaluate(
    `fetch('/api/v1${path}', { method: 'PATCH', headers: { 'Content-Type': 'application/json' },
      body: ${JSON.stringify(JSON.stringify(body))} }).then(({ status }) => status)`,
  )

const read = (page: Page, path: string): Promise<Record<string, unknown>> =>
  page.evaluate(`fetch('/api/v1${path}').then((answer) => answer.json()).then(({ data }) => data)`)

async function newCustomer(page: Page, name: string): Promise<string> {
  expect(await postFrom(page, '/customers', { name, rate_plan: 'retail' })).toBe(201)
  const found: { id: number }[] = await page.evaluate(
    `fetch('/api/v1/customers?search=${encodeURIComponent(name)}').then((answer) => answer.json())
      .then(({ data }) => data)`,
  )
  return `/customers/${found[0]?.id}`
}

async function openForm(page: Page, path: string) {
  await page.goto(new URL(`/console${path}`, page.url()).href)
  await page.getByRole('button', { name: 'Change', exact: true }).click()
  const form = formsOf(page)
  await form.field('Name').waitFor()
  return form
}

test('what two people change in one customer is shown by field, and each field is chosen', async () => {
  const [one, two] = [await signedIn(), await signedIn()]
  const path = await newCustomer(one.page, 'first name')
  const [mine, other] = [await openForm(one.page, path), await openForm(two.page, path)]

  await other.field('Name').fill('their name')
  await other.field('Numbers').fill('12025550177')
  await other.confirm('Save')
  await other.dialog.waitFor({ state: 'detached' })

  await mine.field('Name').fill('my name')
  await mine.dialog.getByText('More settings').click()
  await mine.field('E-mail').fill('me@customer.example')
  // The page behind the form is loaded again meanwhile: the form stays what it was drawn from.
  await one.page.getByRole('heading', { name: 'their name', includeHidden: true }).waitFor()
  await mine.confirm('Save')
  const notice = mine.dialog.getByRole('alert').filter({ hasText: 'Somebody has changed this' })
  await notice.waitFor()
  expect(await notice.getByRole('group').allTextContents()).toEqual([
    'Name Theirs: their name Yours: my name',
  ])
  expect(await notice.getByRole('listitem').allTextContents()).toEqual([
    'Numbers: 12025550177, was empty',
  ])
  expect(await one.inaccessible()).toEqual([])
  expect(await mine.field('E-mail').inputValue()).toBe('me@customer.example')

  // Nothing is saved before the person has chosen.
  await mine.confirm('Save')
  expect(await read(one.page, path)).toMatchObject({ name: 'their name', email: null })

  // Meanwhile it is changed again: that is shown, too.
  expect(await patch(two.page, path, { name: 'their other name' })).toBe(200)
  await notice.getByLabel('Yours').check()
  await mine.confirm('Save')
  await notice.getByText('their other name').waitFor()
  expect(await notice.getByLabel('Yours').isChecked()).toBe(false)
  await notice.getByLabel('Yours').check()
  await mine.confirm('Save')
  await mine.dialog.waitFor({ state: 'detached' })
  expect(await read(one.page, path)).toMatchObject({
    name: 'my name',
    email: 'me@customer.example',
    numbers: ['12025550177'],
  })
  // The browser itself complains about the refusal.
  expect([...one.complaints, ...two.complaints]).toEqual([
    expect.stringContaining('412 (Precondition Failed)'),
  ])
})

test('what is left to others keeps their value, and the rest is saved', async () => {
  const { page, complaints } = await signedIn()
  const path = await newCustomer(page, 'second name')
  const form = await openForm(page, path)
  await form.field('Name').fill('my second name')
  await form.field('Numbers').fill('12025550188')
  expect(await patch(page, path, { name: 'their second name' })).toBe(200)
  await form.confirm('Save')
  await form.dialog.getByLabel('Theirs').check()
  await form.confirm('Save')
  await form.dialog.waitFor({ state: 'detached' })
  expect(await read(page, path)).toMatchObject({
    name: 'their second name',
    numbers: ['12025550188'],
  })
  expect(complaints).toEqual([])
})

test('a change of what the form does not show is no reason to ask', async () => {
  const { page, complaints } = await signedIn()
  const path = await newCustomer(page, 'third name')
  const form = await openForm(page, path)
  await form.field('Name').fill('my third name')
  // Only the time of its last change is another one.
  expect(await patch(page, path, {})).toBe(200)
  await form.confirm('Save')
  await form.dialog.waitFor({ state: 'detached' })
  expect(await read(page, path)).toMatchObject({ name: 'my third name' })
  expect(complaints).toEqual([])
})

test('two people change one webhook', async () => {
  const { page, complaints } = await signedIn()
  const made = { url: 'https://hooks.invalid/two', description: 'first' }
  expect(await postFrom(page, '/webhooks', made)).toBe(201)
  await page.getByRole('link', { name: 'Webhooks', exact: true }).click()
  await row(page, made.url)
    .getByRole('button', { name: /^Change/ })
    .click()
  const form = formsOf(page)
  const [{ id } = { id: 0 }] = (await read(page, '/webhooks')) as unknown as { id: number }[]
  await form.dialog.getByLabel('Description').fill('mine')
  expect(await patch(page, `/webhooks/${id}`, { description: 'theirs', is_active: false })).toBe(
    200,
  )
  await form.confirm('Save')
  const notice = form.dialog.getByRole('alert').filter({ hasText: 'Somebody has changed this' })
  await notice.waitFor()
  expect(await notice.getByRole('group').allTextContents()).toEqual([
    'Description Theirs: theirs Yours: mine',
  ])
  expect(await notice.getByRole('listitem').allTextContents()).toEqual(['Active: no, was yes'])
  await notice.getByLabel('Yours').check()
  await form.confirm('Save')
  await form.dialog.waitFor({ state: 'detached' })
  expect(await read(page, `/webhooks/${id}`)).toMatchObject({
    description: 'mine',
    is_active: false,
  })
  expect(complaints).toEqual([])
})

test('where a part of the console is missing, a deletion says so and is not done', async () => {
  const { page } = await signedIn()
  const path = await newCustomer(page, 'kept')
  await page.goto(new URL(`/console${path}`, page.url()).href)
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  const { dialog, confirm } = formsOf(page)
  await dialog.getByText('Delete this customer?').waitFor()
  // Another version of the program is there since the page was loaded.
  await page.route('**/console/assets/part-*', (route) => route.fulfill({ status: 404 }))
  await confirm('Delete')
  await dialog.getByText('A part of the console could not be loaded').waitFor()
  expect(await read(page, path)).toMatchObject({ name: 'kept' })
})

test('what has changed meanwhile is shown before it is deleted, alone and among many', async () => {
  const { page } = await signedIn()
  const path = await newCustomer(page, 'gone alone')
  await page.goto(new URL(`/console${path}`, page.url()).href)
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  const { dialog, confirm } = formsOf(page)
  await dialog.getByText('Delete this customer?').waitFor()
  expect(await patch(page, path, { credit_limit: 5 })).toBe(200)
  await confirm('Delete')
  const notice = dialog.getByRole('alert').filter({ hasText: 'Nothing was deleted.' })
  await notice.waitFor()
  expect(await notice.getByRole('listitem').allTextContents()).toEqual(['Credit limit: 5, was 0'])
  expect(await read(page, path)).toMatchObject({ name: 'gone alone' })
  // Meanwhile it is changed again: that is shown, too.
  expect(await patch(page, path, { credit_limit: 6 })).toBe(200)
  await confirm('Delete')
  await notice.getByText('Credit limit: 6, was 0').waitFor()
  await confirm('Delete')
  await page.getByText('The customer "gone alone" is removed.').waitFor()

  const first = await newCustomer(page, 'gone first')
  await newCustomer(page, 'gone second')
  await page.goto(new URL('/console/customers?q=gone', page.url()).href)
  await expect.poll(() => row(page, 'gone').count()).toBe(2)
  await page.getByRole('checkbox', { name: 'Select all of Customers' }).click()
  await page
    .getByRole('group', { name: 'Selected customers' })
    .getByRole('button', { name: 'Delete', exact: true })
    .click()
  await dialog.getByText('Delete 2 customers?').waitFor()
  expect(await patch(page, first, { max_cps: 7 })).toBe(200)
  await confirm('Delete')
  await dialog.getByText('1 customer is deleted. 1 customer is not:').waitFor()
  await dialog.getByText('gone first: somebody has changed it meanwhile').waitFor()
  await dialog.getByText('Calls per second: 7, was 0').waitFor()
  await confirm('Try again')
  await page.getByText('2 customers are deleted.').waitFor()
})
