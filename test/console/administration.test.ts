/** What operators administer in the console: phones, keys, webhooks, bans, carriers, the audit log, settings. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openBrowser, openConsole, postFrom } from '../support/console-browser.ts'
import { ofTenant, startConsoleRig } from '../support/console-rig.ts'

let browser: Browser
beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(() => browser.close())

const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })

const confirm = (page: Page, action: string) =>
  page.getByRole('dialog').getByRole('button', { name: action }).click()

/** Two tests start the program: each walks through several screens. */
const timeout = 180_000

test(
  'an administrator makes phones, webhooks and bans, and reads keys, audit and settings',
  { timeout },
  async () => {
    const { tollgate, console: opened } = await startConsoleRig(browser)
    const { page, complaints, inaccessible } = opened
    const isClean = async () => expect(await inaccessible()).toEqual([])

    await page.getByRole('link', { name: 'Phones' }).click()
    await page.getByRole('button', { name: 'New extension' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Extension').fill('101')
    await dialog.getByRole('combobox', { name: 'Tenant', exact: true }).selectOption('acme')
    await dialog.getByLabel('Name').fill('Desk')
    await isClean()
    await confirm(page, 'Create')
    const shown = await page.locator('.token').textContent()
    expect(shown).toMatch(/^[0-9a-f]{32}$/)
    const phone = row(page, 'Desk')
    await phone.getByText('unregistered').waitFor()
    await phone.getByRole('button', { name: /^New password/ }).click()
    await confirm(page, 'Set')
    await page.getByText('The password, shown only now').waitFor()
    await expect.poll(() => page.locator('.token').textContent()).not.toBe(shown)
    await isClean()
    await phone.getByRole('button', { name: /^Delete/ }).click()
    await confirm(page, 'Delete')
    await page.getByText('There is no extension.').waitFor()

    await page.getByRole('link', { name: 'Webhooks' }).click()
    await page.getByRole('button', { name: 'New endpoint' }).click()
    await page.getByRole('dialog').getByLabel('Address').fill('https://hooks.invalid/in')
    await confirm(page, 'Create')
    await page.getByText('The signing secret, shown only now').waitFor()
    await isClean()
    await page.getByRole('link', { name: 'https://hooks.invalid/in' }).click()
    await page.getByRole('button', { name: 'Send a test' }).click()
    await confirm(page, 'Send')
    await row(page, 'webhook.test').getByText('pending').waitFor()
    await isClean()
    await row(page, 'webhook.test').getByRole('button').click()
    await confirm(page, 'Send')
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    await page.getByRole('link', { name: 'Bans' }).click()
    await page.getByRole('button', { name: 'Ban an address' }).click()
    await page.getByRole('dialog').getByLabel('IP address').fill('203.0.113.9')
    await confirm(page, 'Ban')
    await row(page, '203.0.113.9').getByText('banned by an operator').waitFor()
    await isClean()
    await row(page, '203.0.113.9').getByRole('button').click()
    await confirm(page, 'Lift')
    await page.getByText('No source is banned.').waitFor()

    const token = await tollgate.createKey('--name', 'night agent')
    const called = await fetch(
      `http://127.0.0.1:${tollgate.apiPort}/api/v1/mcp/tools/list_api_keys`,
      {
        method: 'POST',
        body: '{}',
        headers: { Authorization: `Bearer ${token.trim()}`, 'Content-Type': 'application/json' },
      },
    )
    expect(called.status).toBe(200)
    await page.getByRole('link', { name: 'Keys' }).click()
    await page.getByRole('link', { name: 'night agent' }).click()
    const today = row(page, new Date().toISOString().slice(0, 10))
    await today.getByRole('cell', { name: '1', exact: true }).waitFor()
    await isClean()

    await page.getByRole('link', { name: 'Audit' }).click()
    await row(page, 'SIP packets of').first().waitFor()
    await page.getByLabel('By').selectOption('agents')
    await page.getByRole('button', { name: 'Filter' }).click()
    await row(page, 'called the tool list_api_keys').getByText('agent', { exact: true }).waitFor()
    expect(await row(page, 'SIP packets of').count()).toBe(0)
    await page.waitForURL(/by=agents/)
    await isClean()

    const carrier = { name: 'telco', gateways: [{ host: '127.0.0.1', port: 9 }] }
    expect(await postFrom(page, '/routing/carriers', carrier)).toBe(201)
    await page.getByRole('link', { name: 'Carriers' }).click()
    await row(page, 'telco').getByText('0 of 1').waitFor()
    await page.getByLabel('Calls of the last').selectOption('day')
    await page.waitForURL(/period=day/)
    await isClean()
    await page.getByRole('link', { name: 'telco' }).click()
    await row(page, 'udp/127.0.0.1:9').waitFor()
    await isClean()
    await page.getByRole('button', { name: 'Change' }).click()
    await page.getByRole('dialog').getByText('More settings').click()
    await page.getByRole('dialog').getByLabel('Calls at once').fill('7')
    await isClean()
    await confirm(page, 'Save')
    await page.getByRole('definition').filter({ hasText: '7' }).waitFor()
    await page.getByRole('button', { name: 'Test call' }).click()
    await page.getByRole('dialog').getByLabel('Extension').fill('404')
    await page.getByRole('dialog').getByLabel('Number').fill('+15550100')
    await isClean()
    await confirm(page, 'Call')
    await page.getByRole('dialog').getByText('extension not found').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()

    await page.getByRole('link', { name: 'Settings' }).click()
    await page.getByLabel('Search').fill('ADMIN_PASSWORD')
    await row(page, 'ADMIN_PASSWORD').getByText('set, not shown').waitFor()
    await page.locator('a[href="/guide#setting-admin_password"]').waitFor()
    await page.getByLabel('Search').fill('DRAIN_SECONDS')
    await row(page, 'DRAIN_SECONDS')
      .getByText(/environment|default/)
      .waitFor()
    await isClean()
    // The browser's own line about the refused test call.
    expect(complaints).toEqual([expect.stringMatching(/ 404 .*test-call/)])
  },
)

test(
  'the administrator of a tenant sees its phones, and nothing of the platform',
  { timeout },
  async () => {
    const { tollgate, console: opened } = await startConsoleRig(browser)
    const admin = opened.page
    for (const [tenant, extension] of [
      ['acme', '101'],
      ['other', '202'],
    ] as const)
      expect(
        await postFrom(admin, '/pbx/extensions', {
          tenant,
          extension,
          display_name: `desk of ${tenant}`,
          password: 'a long password',
        }),
      ).toBe(201)
    const user = { ...ofTenant, role: 'admin', tenant_slug: 'acme' }
    expect(await postFrom(admin, '/users', user)).toBe(201)
    const { page, signIn, complaints } = await openConsole(browser, tollgate)
    onTestFinished(() => page.context().close())
    await signIn(ofTenant.username, ofTenant.password)
    await page.getByRole('link', { name: 'Phones' }).click()
    await row(page, 'desk of acme').waitFor()
    expect(await row(page, 'desk of other').count()).toBe(0)
    for (const name of ['Bans', 'Settings'])
      expect(await page.getByRole('link', { name }).count()).toBe(0)
    await page.getByRole('button', { name: 'New extension' }).click()
    expect(await page.getByRole('dialog').getByLabel('Tenant').count()).toBe(0)
    expect(complaints).toEqual([])
  },
)
