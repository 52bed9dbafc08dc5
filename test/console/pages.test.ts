/** The pages of single things: their state and what to do, their day, and what was done, undone. */
import { expect, test } from 'vitest'
import { formsOf, postFrom, row } from '../support/console-browser.ts'
import { ofTenant, placeCall, shareConsole } from '../support/console-rig.ts'
import { openPeer } from '../support/scripted-node.ts'

const { rig, open, signedIn } = shareConsole()

test('a carrier that refuses the registration is red, with the reason and what to do', async () => {
  const registrar = await openPeer(rig().tollgate)
  registrar.always('REGISTER', 403, { tag: 'r' })
  registrar.always('OPTIONS', 200, { tag: 'probed' })
  const { page, complaints } = await signedIn()
  const carrier = {
    name: 'telco',
    direction: 'out',
    gateways: [{ host: '127.0.0.1', port: registrar.port }],
    auth: { type: 'register', username: 'trunk', password: 'secret' },
    rate_plan: 'retail',
  }
  expect(await postFrom(page, '/routing/carriers', carrier)).toBe(201)
  await page.getByRole('link', { name: 'Carriers', exact: true }).click()
  await page.getByRole('link', { name: 'telco', exact: true }).click()
  await page.getByRole('heading', { name: 'telco', level: 1 }).waitFor()
  await page.getByText(/^registration failed: 403/).waitFor()
  await page.getByText(/^The carrier refuses this account/).waitFor()
  expect(await page.title()).toBe('telco · Tollgate')
  expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1)
  await page.getByRole('main').getByRole('link', { name: 'retail' }).waitFor()
  await page.getByText('No route leads to it.').waitFor()
  await page.getByText('No call in the last 7 days.').waitFor()
  await row(page, 'The carrier "telco" is created.').getByText('admin').waitFor()
  expect(complaints).toEqual([])
})

test('a change is said with its undoing, which gives the page back what it had', async () => {
  const { page, complaints } = await signedIn()
  const plan = { name: 'fleeting', currency: 'EUR' }
  expect(await postFrom(page, '/rate-plans', plan)).toBe(201)
  const customer = { name: 'first name', rate_plan: 'fleeting' }
  expect(await postFrom(page, '/customers', customer)).toBe(201)
  const { dialog, field, confirm } = formsOf(page)
  await page.getByRole('link', { name: 'Customers', exact: true }).click()
  await page.getByRole('link', { name: 'first name' }).click()
  await page.getByRole('button', { name: 'Change' }).click()
  await field('Name').fill('second name')
  await confirm('Save')
  await dialog.waitFor({ state: 'detached' })
  await page.getByRole('heading', { name: 'second name', level: 1 }).waitFor()
  const toast = page.getByRole('status').filter({ hasText: 'is changed: name "second name"' })
  await toast.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('It is undone.').waitFor()
  await page.getByRole('heading', { name: 'first name', level: 1 }).waitFor()
  const names = rig().tollgate.query<{ name: string }>(
    "SELECT name FROM customer WHERE name IN ('first name', 'second name')",
  )
  expect(names).toEqual([{ name: 'first name' }])
  await page.getByRole('button', { name: 'Delete' }).click()
  await confirm('Delete')
  await page.getByText('The customer "first name" is removed.').waitFor()
  expect(complaints).toEqual([])
})

test('a node shows the calls of its day, its probe, and who has drained it', async () => {
  await placeCall(rig())
  const { page, complaints } = await signedIn()
  const [node] = rig().nodes
  await page.getByRole('link', { name: 'PBX nodes' }).click()
  await page.getByRole('link', { name: `127.0.0.1:${node?.port}`, exact: true }).click()
  await page.getByRole('heading', { name: `127.0.0.1:${node?.port}`, level: 1 }).waitFor()
  await page.getByText('in service', { exact: true }).waitFor()
  await page.getByText(/^200 /).waitFor()
  await page.getByRole('button', { name: 'Drain' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click()
  await page.getByText('draining: 1 call left').waitFor()
  await page.getByText(/^It was drained by an operator: it gets no new calls/).waitFor()
  await page.getByRole('button', { name: 'Take back' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Take back' }).click()
  await page.getByText('in service', { exact: true }).waitFor()
  await row(page, 'goes from active to inactive').getByText('admin').waitFor()
  expect(complaints).toEqual([])
})

test('what is gone, or belongs to another tenant, is one sentence', async () => {
  const { page } = await signedIn()
  for (const [path, noun] of [
    ['carriers/999', 'Carrier'],
    ['customers/999', 'Customer'],
    ['phones/999', 'Extension'],
    ['nodes/999', 'PBX node'],
    ['rate-plans/999', 'Rate plan'],
    ['webhooks/999', 'Endpoint'],
    ['keys/00000000-0000-4000-8000-000000000000', 'Key'],
    ['proposals/00000000-0000-4000-8000-000000000000', 'Proposal'],
  ] as const) {
    await page.goto(`/console/${path}`)
    const said = page.getByRole('alert').filter({ hasText: `${noun} not found` })
    await said.waitFor()
    expect(await page.getByRole('main').getByRole('table').count()).toBe(0)
    expect(await page.getByRole('main').getByRole('button').count()).toBe(0)
  }
  const user = { ...ofTenant, role: 'admin', tenant_slug: 'acme' }
  expect(await postFrom(rig().console.page, '/users', user)).toBe(201)
  const phone = { extension: '100', display_name: 'Desk', password: 'a secret of the desk' }
  expect(await postFrom(page, '/pbx/extensions', { ...phone, tenant: 'acme' })).toBe(201)
  expect(await postFrom(page, '/pbx/extensions', { ...phone, tenant: 'other' })).toBe(201)
  const tenant = await open()
  await tenant.signIn(ofTenant.username, ofTenant.password)
  await tenant.page.getByRole('link', { name: 'Phones', exact: true }).click()
  await tenant.page.getByRole('link', { name: '100', exact: true }).click()
  await tenant.page.getByRole('heading', { name: '100 Desk', level: 1 }).waitFor()
  await tenant.page.getByText('acme.example', { exact: true }).waitFor()
  for (const path of ['customers/3', 'phones/2', 'nodes/1']) {
    await tenant.page.goto(`/console/${path}`)
    await tenant.page
      .getByRole('alert')
      .getByText(/not found/)
      .waitFor()
  }
})
