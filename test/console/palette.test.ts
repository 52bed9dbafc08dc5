/** The palette and forms that an address fills in, in a real browser, by the keyboard. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { postFrom } from '../support/console-browser.ts'
import { admin, ofTenant, placeCall, shareConsole } from '../support/console-rig.ts'

const { rig, open, signedIn } = shareConsole()

const field = (page: Page) => page.getByRole('combobox', { name: 'Find anything' })

/** Types a text, and waits for an option with this name to be the first. */
async function find(page: Page, text: string, first: RegExp): Promise<void> {
  await field(page).fill(text)
  const chosen = page.locator('[role="option"][aria-selected="true"]')
  await expect.poll(() => chosen.textContent()).toMatch(first)
}

const dialogOf = (page: Page) => page.locator('dialog[open]:not(.palette)')

test('by the keyboard alone a customer is found, topped up, and is recent afterwards', async () => {
  const { page, complaints, inaccessible } = await signedIn()
  await page.keyboard.press('Control+k')
  await find(page, 'payi', /^paying/)
  expect(await inaccessible()).toEqual([])
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/console\/customers\/1$/)

  await page.keyboard.press('/')
  const first = page.locator('[role="option"]').first()
  await expect.poll(() => first.textContent()).toMatch(/^paying/)
  await find(page, 'top up pay', /^Top up paying/)
  await page.keyboard.press('Enter')
  const dialog = dialogOf(page)
  await dialog.getByLabel(/^Amount/).fill('5')
  await dialog.getByLabel('Reason').fill('by the palette')
  await page.keyboard.press('Enter')
  await dialog.waitFor({ state: 'detached' })
  await page.waitForURL(/\/console\/customers\/1$/)
  await page.getByRole('link', { name: 'Statement' }).press('Enter')
  await page.getByText('by the palette').waitFor()
  expect(complaints).toEqual([])
})

test('arrows go through the list, Tab from group to group, and Escape gives the focus back', async () => {
  const { page } = await signedIn()
  await page.getByRole('button', { name: /Find anything/ }).click()
  const chosen = page.locator('[role="option"][aria-selected="true"]')
  // The list grows while the server still answers: then the keys go another way.
  await expect
    .poll(async () => {
      await find(page, 'o', /./)
      await page.locator('[role="group"]').nth(2).waitFor()
      const starts = await page.evaluate(
        `[...document.querySelectorAll('.palette [role=group]')]
          .map((group) => group.querySelector('[role=option]').id)`,
      )
      await page.keyboard.press('Tab')
      const isSecond = Array.isArray(starts) && (await chosen.getAttribute('id')) === starts[1]
      await page.keyboard.press('Shift+Tab')
      await page.keyboard.press('ArrowUp')
      await page.keyboard.press('ArrowDown')
      const first = await chosen.getAttribute('id')
      const active = await field(page).getAttribute('aria-activedescendant')
      return { isSecond, first, active }
    })
    .toEqual({ isSecond: true, first: 'found-0', active: 'found-0' })
  await page.keyboard.press('Escape')
  await expect
    .poll(() => page.evaluate('document.activeElement.textContent'))
    .toMatch(/^Find anything/)
})

test('a live call is found by its number and ended; a screen, a setting and the guide are found', async () => {
  const { page } = await signedIn()
  const caller = await placeCall(rig())
  await page.keyboard.press('/')
  await find(page, 'end call 1202555', /^End the call 12025550100 → 18005551212/)
  await page.keyboard.press('Enter')
  const dialog = dialogOf(page)
  await dialog.getByText('12025550100').waitFor()
  await dialog.getByRole('button', { name: 'Hang up' }).click()
  caller.reply(await caller.next('BYE'), 200)
  // Its keys are its own until it is closed.
  await dialog.waitFor({ state: 'detached' })
  await page.keyboard.press('/')
  await find(page, 'drain_sec', /^DRAIN_SECONDS/)
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/console\/settings\?q=DRAIN_SECONDS$/)
  await page.keyboard.press('Control+k')
  await find(page, 'first trunk', /^First trunk/)
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/guide#first-trunk$/)
})

test('an answer that comes late does not replace that of a later text', async () => {
  const { page } = await signedIn()
  await page.route('**/api/v1/search?q=our*', async (route) => {
    await page.waitForResponse(/search\?q=broke/)
    await route.continue()
  })
  await page.keyboard.press('/')
  const asked = page.waitForRequest(/search\?q=our/)
  await field(page).fill('our')
  await asked
  const late = page.waitForResponse(/search\?q=our/)
  await find(page, 'broke', /^broke/)
  await late
  await page.waitForTimeout(100)
  expect(await page.getByRole('option', { name: 'ours' }).count()).toBe(0)
})

test('keys go to screens, are listed, and are letters in a field', async () => {
  const { page } = await signedIn()
  await page.keyboard.type('gc')
  await page.waitForURL(/\/console\/customers$/)
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys' }).getByText('Carriers').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('searchbox').first().fill('')
  await page.getByRole('searchbox').first().pressSequentially('gr/?')
  await page.waitForURL(/customers\?q=/)
})

test('a link opens a form filled in, does nothing by itself, and asks no second time', async () => {
  const { page, complaints } = await signedIn()
  const sent: string[] = []
  page.on('request', (request) => {
    if (request.method() !== 'GET') sent.push(request.url())
  })
  await page.goto(
    '/console/spend-guards?new=1&scope=customer&who=1&prefix=1900&action=cap&amount=5&end_live_calls=1',
  )
  const dialog = dialogOf(page)
  await dialog.getByText('This form was filled in by a link').waitFor()
  expect(await dialog.getByLabel('Its id or name').inputValue()).toBe('1')
  expect(await dialog.getByLabel(/^First digits/).inputValue()).toBe('1900')
  expect(await dialog.getByLabel('What happens').inputValue()).toBe('cap')
  expect(await dialog.getByLabel('End calls that are answered').isChecked()).toBe(true)
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.waitForURL(/\/console\/spend-guards$/)
  expect(sent).toEqual([])

  await page.goto('/console/numbers?new=1&number=%2B4930100&customer=%231')
  await dialog.getByText('This form was filled in by a link').waitFor()
  const customer = dialog.getByLabel('Customer')
  await expect.poll(() => customer.locator('option:checked').textContent()).toBe('paying')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('cell', { name: '+4930100', exact: true }).waitFor()

  await page.goto('/console/users?new=1&username=eve&password=chosen+by+a+link')
  await dialog.getByText('This form was filled in by a link').waitFor()
  expect(await dialog.getByLabel('Password').inputValue()).toBe('')
  await page.goto('/console/nodes?do=drain&of=999')
  await page.getByText('What the link asks for is no longer here.').waitFor()
  await page.goto('/console/nodes?do=drain&of=1')
  await dialog.getByText('Drain this node?').waitFor()
  await page.keyboard.press('Escape')
  await page.waitForURL(/\/console\/nodes$/)
  expect(complaints).toEqual([])
})

test('a form makes what it lacks, and has what was typed after the session ended', async () => {
  const { page, signIn } = await open()
  await signIn(admin.username, admin.password)
  await page.goto('/console/phones?new=1')
  const dialog = dialogOf(page).first()
  await dialog.getByRole('textbox', { name: 'Extension' }).fill('4711')
  await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill('Desk')
  await dialog.getByRole('button', { name: 'New tenant' }).click()
  const over = page.getByRole('dialog', { name: 'New tenant' })
  await over.getByLabel('Short name').fill('No Good')
  await over.getByLabel('SIP domains').fill('fresh.example')
  await over.getByRole('button', { name: 'Create' }).click()
  await over.getByLabel('Short name').fill('fresh')
  await over.getByRole('button', { name: 'Create' }).click()
  await over.waitFor({ state: 'detached' })
  const tenant = dialog.getByRole('combobox', { name: 'Tenant' })
  await expect.poll(() => tenant.locator('option:checked').textContent()).toBe('fresh')
  expect(await dialog.getByRole('textbox', { name: 'Extension' }).inputValue()).toBe('4711')

  await page.context().clearCookies()
  // A request of the list may come first: then the form is gone already.
  const create = dialog.getByRole('button', { name: 'Create' })
  await create.click({ timeout: 2_000 }).catch(() => undefined)
  await page.getByText('Your session has ended').waitFor()
  await signIn(admin.username, admin.password)
  await dialog.getByText('What you typed before is here again').waitFor()
  expect(await dialog.getByRole('textbox', { name: 'Extension' }).inputValue()).toBe('4711')
  await expect.poll(() => tenant.locator('option:checked').textContent()).toBe('fresh')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await page.getByText('The password, shown only now').waitFor()
  await page.getByRole('link', { name: '4711', exact: true }).waitFor()
})

test('a user of a tenant finds nothing of others, and no action that it may not do', async () => {
  expect(
    await postFrom(rig().console.page, '/users', {
      ...ofTenant,
      role: 'auditor',
      tenant_slug: 'acme',
    }),
  ).toBe(201)
  const { page, signIn } = await open()
  await signIn(ofTenant.username, ofTenant.password)
  await page.keyboard.press('Control+k')
  await find(page, 'our', /^ours/)
  await field(page).fill('theirs')
  await page.getByText('Nothing has this name or number.').waitFor()
  await field(page).fill('top up ours')
  await page.getByText('Nothing has this name or number.').waitFor()
})

test('an operation of the API reference is found by words of its summary', async () => {
  const { page, complaints } = await open()
  await page.goto('/docs')
  await page.locator('.opblock-get').first().waitFor()
  const all = await page.locator('.opblock-get').count()
  await page.getByLabel('Find an operation').fill('balance manually')
  await page.getByText('1 operation', { exact: true }).waitFor()
  await page.getByText('Adjust the balance manually').waitFor()
  // The list of what Tollgate itself asks stays below them.
  await expect.poll(() => page.locator('.opblock-get').count()).toBe(0)
  await page.getByLabel('Find an operation').fill('')
  await expect.poll(() => page.locator('.opblock-get').count()).toBe(all)
  expect(complaints).toEqual([])
})
