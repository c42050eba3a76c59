/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Starts a browser for the programs of a test file, and writes the address of
 * the browser to FILE:
 *
 *     node serve.mjs FILE
 *
 * The browser ends with this program.
 */

import { renameSync, writeFileSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { options } from './launch.mjs';


const [file] = process.argv.slice(2);
const server = await chromium.launchServer(options());

writeFileSync(`${file}.new`, server.wsEndpoint());
renameSync(`${file}.new`, file);
