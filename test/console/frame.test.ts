/** What is around the screens: the menu on phones, the own password, the guide, the API reference. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openBrowser, openConsole } from '../support/console-browser.ts'
import { admin, startConsoleRig, type ConsoleRig } from '../support/console-rig.ts'

let browser: Browser
let rig: ConsoleRig
const atEnd: (() => void | Promise<void>)[] = []
beforeAll(async () => {
  browser = await openBrowser()
  rig = await startConsoleRig(browser, (work) => atEnd.push(work))
})
afterAll(async () => {
  for (const work of atEnd.toReversed()) await work()
  await browser.close()
})

async function open(options: Parameters<typeof openConsole>[2] = {}) {
  const opened = await openConsole(browser, rig.tollgate, options)
  onTestFinished(() => opened.page.context().close())
  return opened
}

test('on a phone the menu is behind a button, which keys open and close', async () => {
  const { page, signIn, complaints } = await open({ width: 390 })
  await signIn(admin.username, admin.password)
  const link = page.getByRole('link', { name: 'Audit' })
  expect(await link.isVisible()).toBe(false)
  const button = page.getByRole('button', { name: 'Menu' })
  await button.focus()
  await page.keyboard.press('Enter')
  await link.waitFor()
  await page.keyboard.press('Escape')
  await link.waitFor({ state: 'hidden' })
  expect(await button.evaluate('document.activeElement?.textContent')).toBe('Menu')
  await button.click()
  await link.click()
  await page.getByRole('heading', { name: 'Audit' }).waitFor()
  await link.waitFor({ state: 'hidden' })
  expect(complaints).toEqual([])
})

test('the menu has its screens in groups, and marks the one that is shown', async () => {
  const { page, signIn } = await open()
  await signIn(admin.username, admin.password)
  const routing = page.getByRole('region', { name: 'Routing' })
  await routing.getByRole('link', { name: 'Carriers' }).click()
  const current = page.locator('nav [aria-current=page]')
  expect(await current.allTextContents()).toEqual(['Carriers'])
})

test('at 1,280 pixels no action of a table is out of reach, however long its texts are', async () => {
  const { page, signIn } = await open()
  await signIn(admin.username, admin.password)
  const long = 'a'.repeat(60)
  await page.route('**/pbx/calls/active', (route) =>
    route.fulfill({
      json: [
        {
          uuid: 'call-1',
          call_uuid: 'call-1',
          state: 'ACTIVE',
          direction: 'outbound',
          caller_id_number: `+${'4'.repeat(38)}`,
          destination_number: `+${'5'.repeat(38)}`,
          duration_seconds: 1,
          start_stamp: '2026-01-01T00:00:00.000Z',
          answer_stamp: null,
          node: `sip:${long}.example`,
          instance: long,
          cost: 1,
          cost_exact: '1.00',
          currency: 'USD',
          carrier: null,
          customer_id: null,
          transfer: null,
          price: null,
        },
      ],
    }),
  )
  await page.goto('/console/calls')
  const button = page.getByRole('button', { name: /^Listen to/ })
  await button.waitFor()
  const box = await button.boundingBox()
  expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThan(1_280)
  // Nothing is over it, and no scrolling is needed.
  await button.click()
  await page.getByRole('dialog').waitFor()
  expect(await page.evaluate(`document.querySelector('.scroll').scrollLeft`)).toBe(0)
})

test('the own password is changed in the account menu; a wrong old one is told', async () => {
  const made = await rig.console.page.evaluate(
    `fetch('/api/v1/users', { method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ username: 'pat', password: 'first password', role: 'auditor' }) }).then(({ status }) => status)`,
  )
  expect(made).toBe(201)
  const { page, signIn } = await open()
  await signIn('pat', 'first password')
  await page.getByRole('button', { name: 'Account' }).click()
  await page.getByRole('button', { name: 'Change password' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Old password').fill('wrong password')
  await dialog.getByLabel('New password').fill('second password')
  await dialog.getByRole('button', { name: 'Change password' }).click()
  await dialog.getByText('is not the password of this user').waitFor()
  await dialog.getByLabel('Old password').fill('first password')
  await dialog.getByRole('button', { name: 'Change password' }).click()
  await page.getByText('Password changed').waitFor()
  await page.reload()
  await page.getByRole('button', { name: 'Account' }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await signIn('pat', 'second password')
})

test.each([
  ['light', 1_280],
  ['dark', 390],
] as const)(
  'the guide is read without a session: contents, search, anchors (%s)',
  async (colorScheme, width) => {
    const { page, complaints, inaccessible } = await open({ colorScheme, width })
    await page.getByRole('link', { name: 'Guide' }).click()
    await page.getByRole('heading', { name: 'Guide', level: 1 }).waitFor()
    expect(await inaccessible()).toEqual([])
    expect(
      await page.evaluate(
        'document.documentElement.scrollWidth > document.documentElement.clientWidth',
      ),
    ).toBe(false)
    const contents = page.getByRole('button', { name: 'Contents' })
    if (await contents.isVisible()) await contents.click()
    const menu = page.getByRole('navigation')
    await menu.getByLabel('Search').fill('dispatcher  KAMAILIO')
    await menu.getByText('1 section', { exact: true }).waitFor()
    expect(await page.getByRole('heading', { name: 'First trunk' }).isVisible()).toBe(false)
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/guide#in-front-of-several-nodes$/)
    await page.getByRole('heading', { name: 'In front of several nodes' }).waitFor()
    expect(complaints).toEqual([])
  },
)

test('the API reference has the session of the console, and asks to sign in without one', async () => {
  const { page, complaints, inaccessible } = await open({ colorScheme: 'dark' })
  await page.getByRole('link', { name: 'API reference' }).click()
  await page.getByText(/^Sign in to try/).waitFor()
  await page.getByLabel('User').fill(admin.username)
  await page.getByLabel('Password').fill('wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Username or password is wrong').waitFor()
  await page.getByLabel('Password').fill(admin.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText(`Signed in as ${admin.username}`).waitFor()
  expect(await page.getByLabel('Password').isVisible()).toBe(false)
  // What Swagger UI itself makes: a select without a name, text outside of its main part.
  const ofSwagger = /swagger|opblock|id="servers"|class="information-container/
  expect((await inaccessible()).filter((each) => !ofSwagger.test(each))).toEqual([])
  await page.getByRole('banner').getByRole('link', { name: 'Console' }).click()
  await page.getByRole('button', { name: 'Account' }).waitFor()
  // The browser reports the refused sign-in.
  expect(complaints.filter((each) => !each.includes('401'))).toEqual([])
})
