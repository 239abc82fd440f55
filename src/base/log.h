// Log: the process's logger (spdlog), by level; messages are made only when the level is on.
#pragma once

#include <spdlog/spdlog.h>

#define SLUICE_LOG_DEBUG(...) SPDLOG_LOGGER_CALL(::spdlog::default_logger_raw(), ::spdlog::level::debug, __VA_ARGS__)
#define SLUICE_LOG_INFO(...) SPDLOG_LOGGER_CALL(::spdlog::default_logger_raw(), ::spdlog::level::info, __VA_ARGS__)
#define SLUICE_LOG_WARN(...) SPDLOG_LOGGER_CALL(::spdlog::default_logger_raw(), ::spdlog::level::warn, __VA_ARGS__)
#define SLUICE_LOG_ERROR(...) SPDLOG_LOGGER_CALL(::spdlog::default_logger_raw(), ::spdlog::level::err, __VA_ARGS__)
