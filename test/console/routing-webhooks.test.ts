/** Code of the operator in the console: routing webhooks, and the tags that a hook has set. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { formsOf, row } from '../support/console-browser.ts'
import { placeCall, shareConsole } from '../support/console-rig.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const hooks = join(temporaryFolder(), 'hooks.mjs')
writeFileSync(
  hooks,
  `export const onInvite = () => ({ tags: { score: '12', desk: 'sales <b>&' }, set: 'pbx' })`,
)
const { rig, signedIn } = shareConsole({ HOOKS: hooks })

test('the secret of a new routing webhook is shown as one, and the answer of a test as an answer', async () => {
  const { page, complaints, inaccessible } = await signedIn()
  const { open, field, confirm } = formsOf(page)
  await open('Routing webhooks', 'New routing webhook')
  await field('Address').fill('https://crm.invalid/route')
  await confirm('Create')
  await page.getByText('The signing secret, shown only now').waitFor()
  expect(await page.locator('.token').textContent()).toMatch(/^whsec_/)
  await page.getByRole('button', { name: 'Done' }).click()
  const webhook = row(page, 'crm.invalid')
  await webhook.getByRole('button', { name: /^Test/ }).click()
  await field('Number of the caller').fill('4930100')
  await field('Number that is called').fill('4940200')
  await confirm('Test')
  const answer = page.getByRole('status').filter({ hasText: 'failed after' })
  await answer.waitFor()
  expect(await answer.textContent()).toMatch(/^The webhook has failed after [\d.]+ ms: .+/)
  expect(await page.getByText('shown only now').count()).toBe(0)
  expect(await inaccessible()).toEqual([])
  await answer.getByRole('button', { name: 'Done' }).click()
  expect(complaints).toEqual([])
})

test('tags that a hook has set are shown with the call, and its decision in words', async () => {
  const { page, complaints, inaccessible } = await signedIn()
  const caller = await placeCall(rig())
  const call = row(page, '18005551212')
  await call.getByText('active').waitFor()
  await call.getByText('score: 12, desk: sales <b>&').waitFor()
  const address = await call.getByRole('link').first().getAttribute('href')
  await call.getByRole('button', { name: /^Hang up/ }).click()
  await formsOf(page).confirm('Hang up')
  caller.reply(await caller.next('BYE'), 200)
  await page.getByText('No call is in progress.').waitFor()
  await page.goto(address ?? '')
  await page.getByText('score: 12, desk: sales <b>&').waitFor()
  await page.getByText(/The hook onInvite of hooks.mjs has decided/).waitFor()
  expect(await inaccessible()).toEqual([])
  expect(complaints).toEqual([])
})
