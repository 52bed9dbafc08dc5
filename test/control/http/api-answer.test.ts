import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { ApiAnswer } from '../../../control/http/api-answer.ts'

const servers: { close(): void }[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function ask(answer: RequestListener<never, typeof ApiAnswer>): Promise<Response> {
  const server = createServer({ ServerResponse: ApiAnswer }, answer)
  servers.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return fetch(`http://127.0.0.1:${port}/`)
}

test('early headers stand in every kind of answer', async () => {
  for (const finish of [
    (response: ApiAnswer) => response.writeHead(201, { 'Content-Type': 'text/plain' }).end('x'),
    (response: ApiAnswer) => response.writeHead(201, 'Made', { 'X-Own': '1' }).end('x'),
    (response: ApiAnswer) => response.writeHead(201, ['X-Own', '1']).end('x'),
    (response: ApiAnswer) => response.writeHead(201).end('x'),
    (response: ApiAnswer) => {
      response.statusCode = 201
      response.end('x')
    },
  ]) {
    const counted: number[] = []
    const answer = await ask((_, response) => {
      response.setEarly('X-Early', 'yes')
      response.count = { add: (status) => counted.push(status) }
      finish(response)
    })
    expect(answer.status).toBe(201)
    expect(answer.headers.get('x-early')).toBe('yes')
    expect(await answer.text()).toBe('x')
    expect(counted).toEqual([201])
  }
})

test('what the handler sets itself wins over the early header of that name, in any case', async () => {
  const answer = await ask((_, response) => {
    response.setEarly('Cache-Control', 'no-store')
    response.setEarly('X-Other', 'stays')
    response.writeHead(200, { 'cache-control': 'max-age=60' }).end()
  })
  expect(answer.headers.get('cache-control')).toBe('max-age=60')
  expect(answer.headers.get('x-other')).toBe('stays')
})
