/** A page asks for the data of its screen before its script runs, and not once more. */
import { expect, test } from 'vitest'
import { firstRequests } from '../../control/console/first-requests.ts'
import { postFrom } from '../support/console-browser.ts'
import { admin, ofTenant, shareConsole } from '../support/console-rig.ts'

const { rig, open, signedIn } = shareConsole()

/** Each of these requests says what has begun it. */
const begun = (paths: readonly string[]): string => `performance.getEntriesByType('resource')
  .map(({ name, initiatorType }) => name.slice(location.origin.length) + ' by ' + initiatorType)
  .filter((each) => ${JSON.stringify(paths)}.some((path) => each.startsWith(path + ' ')))
  .toSorted()`

test.each([
  ['now', 'The last ten minutes'],
  ['calls', 'No call is in progress.'],
  ['customers', 'paying'],
])('the screen %s shows what the page has asked for', async (screen, text) => {
  const { page, complaints } = await signedIn({ path: '/console/account' })
  // Nothing is loaded again.
  await page.addInitScript('window.setInterval = () => 0')
  await page.goto(`/console/${screen}`)
  await page.getByText(text).first().waitFor()
  const wanted = firstRequests(screen, false)
  expect(wanted.length).toBeGreaterThan(1)
  // The browser lists a request once it has ended.
  await expect
    .poll(() => page.evaluate(begun(wanted)))
    .toEqual(wanted.map((path) => `${path} by link`).toSorted())
  expect(complaints).toEqual([])
})

test('after a session was ended elsewhere, whoever signs in at the reloaded page stays in', async () => {
  const { page, signIn } = await open({ path: '/console/customers' })
  await signIn(admin.username, admin.password)
  await page.getByRole('link', { name: 'paying' }).waitFor()
  const cookies = await page.context().cookies()
  await page.evaluate(`fetch('/api/v1/auth/session', { method: 'DELETE' })`)
  // The browser still has it.
  await page.context().addCookies(cookies)
  await page.reload()
  await signIn(admin.username, admin.password)
  await page.getByRole('link', { name: 'paying' }).waitFor()
  expect(await page.getByText('Your session has ended').count()).toBe(0)
})

test('what the page has asked for one user is never shown to the next one', async () => {
  const user = { ...ofTenant, role: 'admin', tenant_slug: 'acme' }
  expect(await postFrom(rig().console.page, '/users', user)).toBe(201)
  const { page, signIn } = await open({ path: '/console/keys' })
  await signIn(admin.username, admin.password)
  let goOn = (): void => undefined
  const isLeft = new Promise<void>((done) => (goOn = done))
  // The screen comes after it was left: nothing takes the list of customers.
  await page.route('**/console/assets/part-*', async (route) => {
    const response = await route.fetch()
    const script = await response.text()
    if (script.includes('No call is in progress.')) await isLeft
    await route.fulfill({ response, body: script })
  })
  const asked = page.waitForResponse('**/api/v1/customers?*')
  await page.goto('/console/customers')
  await (await asked).finished()
  await page.getByRole('link', { name: 'Keys', exact: true }).click()
  goOn()
  await page.getByRole('button', { name: 'New key' }).waitFor()
  await page.getByRole('button', { name: 'Account' }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await signIn(ofTenant.username, ofTenant.password)
  await page.getByRole('link', { name: 'Customers' }).click()
  await page.getByRole('link', { name: 'ours' }).waitFor()
  expect(await page.getByRole('link', { name: 'theirs' }).count()).toBe(0)
})

test('a tab is that of whoever has signed in at another one as soon as it is shown again', async () => {
  const user = { ...ofTenant, username: 'theo', role: 'admin', tenant_slug: 'acme' }
  expect(await postFrom(rig().console.page, '/users', user)).toBe(201)
  const { page, signIn } = await open({ path: '/console/customers' })
  await signIn(admin.username, admin.password)
  await page.getByRole('link', { name: 'theirs' }).waitFor()
  // The other tab has the same cookies.
  const { username, password } = user
  expect(await postFrom(page, '/auth/session', { username, password })).toBe(200)
  await page.evaluate(`window.isOfFirst = true`)
  await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
  await expect.poll(() => page.evaluate(`window.isOfFirst`)).toBeUndefined()
  await page.getByRole('link', { name: 'ours' }).waitFor()
  expect(await page.getByRole('link', { name: 'theirs' }).count()).toBe(0)
})
