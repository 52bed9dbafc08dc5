/** Second factor and sessions, as a person uses them in the console. */
import { Secret, TOTP } from 'otpauth'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { row } from '../support/console-browser.ts'
import { shareConsole } from '../support/console-rig.ts'

const { signedIn, open } = shareConsole()

const user = { username: 'olga', password: 'correct horse' }
const person = { username: 'ines', password: 'correct horse' }

const requestAs = (page: Page, method: string, path: string, body: object): Promise<number> =>
  page.evaluate(
    `fetch('/api/v1${path}', { method: '${method}', headers: { 'Content-Type': 'application/json' },
      body: ${JSON.stringify(JSON.stringify(body))} }).then(({ status }) => status)`,
  )

/** The next code that was not used, as the authenticator shows it in half a minute. */
const codeFrom = (secret: string, periods: number): string =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({
    timestamp: Date.now() + periods * 30_000,
  })

async function toAccount(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Account' }).click()
  await page.getByRole('link', { name: 'Second factor and sessions' }).click()
  await page.getByRole('heading', { name: 'Your account' }).waitFor()
}

const fillPassword = async (page: Page, { username, password }: typeof user): Promise<void> => {
  await page.getByLabel('User').fill(username)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

test('a user sets up a second factor, signs in with it, and sees and ends sessions', async () => {
  const root = await signedIn()
  expect(await requestAs(root.page, 'POST', '/users', { ...user, role: 'operator' })).toBe(201)
  const first = await open()
  await first.signIn(user.username, user.password)
  await toAccount(first.page)
  await first.page.getByRole('button', { name: 'Set up' }).click()
  const dialog = first.page.getByRole('dialog')
  await dialog.getByLabel('Password').fill(user.password)
  await dialog.getByRole('button', { name: 'Go on' }).click()
  const picture = dialog.getByRole('img', { name: 'Picture of the key' })
  await picture.waitFor()
  const isDrawn = `document.querySelector('dialog svg path').getBBox().width > 20`
  await expect.poll(() => first.page.evaluate(isDrawn)).toBe(true)
  const secret = (await dialog.locator('.token').textContent()) ?? ''
  await dialog.getByLabel('Code').fill(codeFrom(secret, 0))
  await dialog.getByRole('button', { name: 'Turn on' }).click()
  const codes = first.page.locator('.recovery-codes li')
  await codes.first().waitFor()
  expect(await codes.count()).toBe(10)
  const [recovery = ''] = await codes.allTextContents()
  expect(await first.inaccessible()).toEqual([])

  const second = await open()
  await fillPassword(second.page, user)
  await second.page.getByLabel('Code').fill('000000')
  await second.page.getByRole('button', { name: 'Sign in' }).click()
  await second.page.getByText('The code is wrong, or was used before').waitFor()
  expect(await second.inaccessible()).toEqual([])
  await second.page.getByLabel('Code').fill(codeFrom(secret, 1))
  await second.page.getByRole('button', { name: 'Sign in' }).click()
  await second.page.getByRole('button', { name: 'Account' }).waitFor()

  await toAccount(first.page)
  await row(first.page, 'this session').waitFor()
  await row(first.page, 'open').getByRole('button', { name: /^End/ }).click()
  await dialog.getByRole('button', { name: 'End' }).click()
  await expect.poll(() => row(first.page, '127.0.0.1').count()).toBe(1)
  await second.page.reload()
  await second.page.getByText('Password').waitFor()

  await fillPassword(second.page, user)
  await second.page.getByLabel('Code').fill(recovery)
  await second.page.getByRole('button', { name: 'Sign in' }).click()
  await second.page.getByRole('button', { name: 'Account' }).waitFor()
})

test('an administrator requires a second factor; a user without one sets it up to sign in', async () => {
  const { page, inaccessible } = await signedIn()
  expect(await requestAs(page, 'POST', '/users', { ...person, role: 'auditor' })).toBe(201)
  await page.getByRole('link', { name: 'Users', exact: true }).click()
  await page.getByLabel(/A second factor is required/).check()
  const other = await open()
  await fillPassword(other.page, person)
  await other.page.getByText('A second factor is required of you').waitFor()
  const secret = (await other.page.locator('.token').textContent()) ?? ''
  expect(await other.inaccessible()).toEqual([])
  await other.page.getByLabel('Code').fill(codeFrom(secret, 0))
  await other.page.getByRole('button', { name: 'Sign in' }).click()
  await other.page.locator('.recovery-codes li').first().waitFor()
  await other.page.getByRole('button', { name: 'Go on' }).click()
  await other.page.getByRole('button', { name: 'Account' }).waitFor()

  await page.getByLabel(/A second factor is required/).uncheck()
  await page.reload()
  await row(page, person.username)
    .getByRole('button', { name: /^Reset second factor/ })
    .click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await row(page, person.username).getByText('off', { exact: true }).waitFor()
  expect(await inaccessible()).toEqual([])
  await other.page.reload()
  await other.page.getByText('Password').waitFor()
})
